//! Networks in CIDR notation: what Kubernetes can ask of them. Arithmetic on them is in `networks`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cel::Value;
use cel::objects::Opaque;

use super::ip::{self, Ip};
use super::{Entry, Failure, Library, entry};
use crate::rules::expr::value::{opaque, shorten, text};

pub(super) static LIBRARY: Library = Library { name: "cidr", kubernetes: true, entries: ENTRIES };

/// An address with a prefix length as a value. The address may have bits behind the prefix (`10.0.0.1/8`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    /// The address as it was written.
    pub address: IpAddr,
    /// The prefix length, at most 32 or 128.
    pub prefix: u8,
}

impl Opaque for Cidr {
    fn runtime_type_name(&self) -> &'static str {
        "net.CIDR"
    }
}

const ENTRIES: &[Entry] = &[
    entry(
        "cidr",
        &["cidr(string) -> net.CIDR"],
        "The network that the text is, such as `10.0.0.0/8` or `fd00:10::/64`.",
        &[("cidr('10.0.0.0/8').prefixLength()", "8")],
        |args| {
            args.count(1)?;
            parse(args.string(0)?).map(opaque).map_err(Failure::Message)
        },
    ),
    entry(
        "isCIDR",
        &["isCIDR(string) -> bool"],
        "Whether the text is a network in CIDR notation.",
        &[("isCIDR('10.0.0.0/8')", "true"), ("isCIDR('10.0.0.0/33')", "false")],
        |args| {
            args.count(1)?;
            Ok(Value::Bool(parse(args.string(0)?).is_ok()))
        },
    ),
    entry(
        "containsIP",
        &["<net.CIDR>.containsIP(net.IP) -> bool", "<net.CIDR>.containsIP(string) -> bool"],
        "Whether the address is in the network. Addresses of the other family never are.",
        &[("cidr('10.0.0.0/8').containsIP('10.1.2.3')", "true"), ("cidr('10.0.0.0/8').containsIP(ip('::1'))", "false")],
        |args| {
            args.count(2)?;
            let network = args.of::<Cidr>(0)?;
            let address = match args.value(1)? {
                Value::String(source) => ip::parse(source).map_err(Failure::Message)?,
                _ => *args.of::<Ip>(1)?,
            };
            Ok(Value::Bool(network.contains(address.0)))
        },
    ),
    entry(
        "containsCIDR",
        &["<net.CIDR>.containsCIDR(net.CIDR) -> bool", "<net.CIDR>.containsCIDR(string) -> bool"],
        "Whether the other network lies within this one.",
        &[
            ("cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')", "true"),
            ("cidr('10.1.0.0/16').containsCIDR('10.0.0.0/8')", "false"),
        ],
        |args| {
            args.count(2)?;
            let network = args.of::<Cidr>(0)?;
            let other = match args.value(1)? {
                Value::String(source) => parse(source).map_err(Failure::Message)?,
                _ => *args.of::<Cidr>(1)?,
            };
            Ok(Value::Bool(network.prefix <= other.prefix && network.contains(other.address)))
        },
    ),
    entry(
        "ip",
        &["<net.CIDR>.ip() -> net.IP"],
        "The address before the slash, as it was written.",
        &[("string(cidr('10.0.0.1/8').ip())", "'10.0.0.1'")],
        |args| {
            args.count(1)?;
            Ok(opaque(Ip(args.of::<Cidr>(0)?.address)))
        },
    ),
    entry(
        "prefixLength",
        &["<net.CIDR>.prefixLength() -> int"],
        "The number after the slash.",
        &[("cidr('fd00::/64').prefixLength()", "64")],
        |args| {
            args.count(1)?;
            Ok(Value::Int(args.of::<Cidr>(0)?.prefix.into()))
        },
    ),
    entry(
        "masked",
        &["<net.CIDR>.masked() -> net.CIDR"],
        "The network itself: the same prefix, with no bits behind it.",
        &[("string(cidr('10.1.2.3/8').masked())", "'10.0.0.0/8'")],
        |args| {
            args.count(1)?;
            Ok(opaque(args.of::<Cidr>(0)?.masked()))
        },
    ),
    entry(
        "string",
        &["string(net.CIDR) -> string"],
        "The network in CIDR notation.",
        &[("string(cidr('FD00::/64'))", "'fd00::/64'")],
        |args| {
            args.count(1)?;
            Ok(text(args.of::<Cidr>(0)?.to_string()))
        },
    ),
];

/// The network that a text is, or why it is none.
pub(super) fn parse(source: &str) -> Result<Cidr, String> {
    let invalid = || format!("`{}` is not a network in CIDR notation such as `10.0.0.0/8`", shorten(source));
    let (address, prefix) = source.rsplit_once('/').ok_or_else(invalid)?;
    let Ip(address) = ip::parse(address).map_err(|_| invalid())?;
    let padded = prefix.len() > 1 && prefix.starts_with('0');
    if padded || !prefix.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(invalid());
    }
    let prefix: u8 = prefix.parse().map_err(|_| invalid())?;
    if prefix > width(address) { Err(invalid()) } else { Ok(Cidr { address, prefix }) }
}

/// The number of bits of an address.
pub(super) fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address as a number.
pub(super) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u32::from(address).into(),
        IpAddr::V6(address) => address.into(),
    }
}

impl Cidr {
    /// The address of that number, in this network's family; the number must fit it.
    pub(super) fn address_of(&self, number: u128) -> IpAddr {
        match self.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX))),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(number)),
        }
    }

    /// All bits behind the prefix set.
    pub(super) fn host_mask(&self) -> u128 {
        match width(self.address) - self.prefix {
            0 => 0,
            bits => u128::MAX >> (128 - bits),
        }
    }

    /// The network without bits behind the prefix.
    pub(super) fn masked(&self) -> Self {
        Self { address: self.address_of(number(self.address) & !self.host_mask()), prefix: self.prefix }
    }

    fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && number(address) & !self.host_mask() == number(self.address) & !self.host_mask()
    }
}

impl std::fmt::Display for Cidr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
