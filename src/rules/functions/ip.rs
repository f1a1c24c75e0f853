//! IP addresses.

use std::net::{IpAddr, Ipv4Addr};

use cel::Value;
use cel::objects::Opaque;

use super::{Entry, Failure, Library, entry};
use crate::rules::expr::value::{opaque, shorten, text};

pub(super) static LIBRARY: Library = Library { name: "ip", kubernetes: true, entries: ENTRIES };

/// An IP address as a value. Never an IPv6 form of an IPv4 address, never with a zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip(pub IpAddr);

impl Opaque for Ip {
    fn runtime_type_name(&self) -> &'static str {
        "net.IP"
    }
}

/// A question that an address answers with yes or no.
macro_rules! question {
    ($name:literal, $doc:literal, $examples:expr, $answer:expr) => {
        entry($name, &[concat!("<net.IP>.", $name, "() -> bool")], $doc, $examples, |args| {
            args.count(1)?;
            Ok(Value::Bool($answer(args.of::<Ip>(0)?.0)))
        })
    };
}

const ENTRIES: &[Entry] = &[
    entry(
        "ip",
        &["ip(string) -> net.IP"],
        "The IPv4 or IPv6 address that the text is. No leading zeros, no zone, no IPv4 address in IPv6 form.",
        &[("ip('10.0.0.1').family()", "4"), ("ip('fd00::1').family()", "6")],
        |args| {
            args.count(1)?;
            parse(args.string(0)?).map(opaque).map_err(Failure::Message)
        },
    ),
    entry(
        "isIP",
        &["isIP(string) -> bool"],
        "Whether the text is an IP address.",
        &[("isIP('10.0.0.1')", "true"), ("isIP('10.0.0.256')", "false"), ("isIP('::ffff:1.2.3.4')", "false")],
        |args| {
            args.count(1)?;
            Ok(Value::Bool(parse(args.string(0)?).is_ok()))
        },
    ),
    entry(
        "ip.isCanonical",
        &["ip.isCanonical(string) -> bool"],
        "Whether the text is the one canonical form of the address, so that equal addresses are equal texts.",
        &[("ip.isCanonical('fd00::1')", "true"), ("ip.isCanonical('FD00::1')", "false")],
        |args| {
            args.count(1)?;
            let source = args.string(0)?;
            let Ip(address) = parse(source).map_err(Failure::Message)?;
            Ok(Value::Bool(address.to_string() == source))
        },
    ),
    entry(
        "family",
        &["<net.IP>.family() -> int"],
        "4 for an IPv4 address, 6 for an IPv6 address.",
        &[("ip('::1').family()", "6")],
        |args| {
            args.count(1)?;
            Ok(Value::Int(if args.of::<Ip>(0)?.0.is_ipv4() { 4 } else { 6 }))
        },
    ),
    question!(
        "isUnspecified",
        "Whether it is `0.0.0.0` or `::`.",
        &[("ip('0.0.0.0').isUnspecified()", "true")],
        |ip: IpAddr| ip.is_unspecified()
    ),
    question!(
        "isLoopback",
        "Whether it is in `127.0.0.0/8`, or `::1`.",
        &[("ip('127.0.0.1').isLoopback()", "true")],
        |ip: IpAddr| ip.is_loopback()
    ),
    question!(
        "isLinkLocalMulticast",
        "Whether it is in `224.0.0.0/24` or `ff02::/16`.",
        &[("ip('224.0.0.1').isLinkLocalMulticast()", "true")],
        link_local_multicast
    ),
    question!(
        "isLinkLocalUnicast",
        "Whether it is in `169.254.0.0/16` or `fe80::/10`.",
        &[("ip('169.254.169.254').isLinkLocalUnicast()", "true")],
        link_local_unicast
    ),
    question!(
        "isGlobalUnicast",
        "Whether it is an address of one host, and not a loopback or link-local one. Private addresses are.",
        &[("ip('192.168.0.1').isGlobalUnicast()", "true"), ("ip('255.255.255.255').isGlobalUnicast()", "false")],
        global_unicast
    ),
    entry(
        "string",
        &["string(net.IP) -> string"],
        "The address in its canonical form.",
        &[("string(ip('FD00:0::1'))", "'fd00::1'")],
        |args| {
            args.count(1)?;
            Ok(text(args.of::<Ip>(0)?.0.to_string()))
        },
    ),
];

/// The address that a text is, or why it is none.
pub(super) fn parse(source: &str) -> Result<Ip, String> {
    let invalid = |why: &str| format!("`{}` is not an IP address{why}", shorten(source));
    if source.contains('%') {
        return Err(invalid(": a zone is not allowed"));
    }
    match source.parse::<IpAddr>().map_err(|_| invalid(""))? {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            Err(invalid(": an IPv4 address in IPv6 form is not allowed"))
        }
        address => Ok(Ip(address)),
    }
}

fn link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.octets()[..3] == [224, 0, 0],
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    }
}

fn link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn global_unicast(ip: IpAddr) -> bool {
    let broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || link_local_unicast(ip))
}
