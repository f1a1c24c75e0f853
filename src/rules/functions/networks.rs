//! Arithmetic on networks: our own, Kubernetes has none. Results are addresses and networks (`string(…)` gives their text).

use std::net::IpAddr;

use cel::Value;

use super::cidr::{Cidr, number, width};
use super::ip::Ip;
use super::{Args, Entry, Failure, Library, entry};
use crate::rules::expr::value::{list, opaque, text};

pub(super) static LIBRARY: Library = Library { name: "networks", kubernetes: false, entries: ENTRIES };

const ENTRIES: &[Entry] = &[
    entry(
        "nth",
        &["<net.CIDR>.nth(int) -> net.IP"],
        "The address at the position, the network's own address being 0; negative positions count from the end, the last \
         address being -1.",
        &[
            ("string(cidr('10.0.0.0/24').nth(10))", "'10.0.0.10'"),
            ("string(cidr('10.0.0.0/24').nth(-1))", "'10.0.0.255'"),
        ],
        |args| {
            args.count(2)?;
            let (network, position) = (args.of::<Cidr>(0)?, args.int(1)?);
            let offset = position_in(position, network.host_mask())
                .ok_or_else(|| Failure::new(format!("`{network}` has no address at position {position}")))?;
            Ok(address(network, offset))
        },
    ),
    entry(
        "firstUsable",
        &["<net.CIDR>.firstUsable() -> net.IP"],
        "The first address that a host can have: not the network's own, except in /31, /32, /127 and /128.",
        &[
            ("string(cidr('10.0.0.0/24').firstUsable())", "'10.0.0.1'"),
            ("string(cidr('10.0.0.0/31').firstUsable())", "'10.0.0.0'"),
        ],
        |args| {
            args.count(1)?;
            let network = args.of::<Cidr>(0)?;
            Ok(address(network, u128::from(network.host_mask() > 1)))
        },
    ),
    entry(
        "lastUsable",
        &["<net.CIDR>.lastUsable() -> net.IP"],
        "The last address that a host can have: not the broadcast address, which IPv6, /31 and /32 have none of.",
        &[
            ("string(cidr('10.0.0.0/24').lastUsable())", "'10.0.0.254'"),
            ("string(cidr('fd00::/126').lastUsable())", "'fd00::3'"),
        ],
        |args| {
            args.count(1)?;
            let network = args.of::<Cidr>(0)?;
            let last = network.host_mask();
            Ok(address(network, if has_broadcast(network) { last - 1 } else { last }))
        },
    ),
    entry(
        "broadcast",
        &["<net.CIDR>.broadcast() -> net.IP"],
        "The broadcast address of an IPv4 network; an error where there is none.",
        &[("string(cidr('10.0.0.0/24').broadcast())", "'10.0.0.255'")],
        |args| {
            args.count(1)?;
            let network = args.of::<Cidr>(0)?;
            if !has_broadcast(network) {
                return Err(Failure::new(format!("`{network}` has no broadcast address")));
            }
            Ok(address(network, network.host_mask()))
        },
    ),
    entry(
        "netmask",
        &["<net.CIDR>.netmask() -> string"],
        "The prefix written as an address.",
        &[
            ("cidr('10.0.0.0/20').netmask()", "'255.255.240.0'"),
            ("cidr('fd00::/64').netmask()", "'ffff:ffff:ffff:ffff::'"),
        ],
        |args| {
            args.count(1)?;
            let network = args.of::<Cidr>(0)?;
            let all = u128::MAX >> (128 - width(network.address));
            Ok(text(network.address_of(all & !network.host_mask()).to_string()))
        },
    ),
    entry(
        "size",
        &["<net.CIDR>.size() -> int"],
        "How many addresses the network has; an error when they are more than an int counts (IPv6 prefixes below /66).",
        &[("cidr('10.0.0.0/24').size()", "256"), ("cidr('10.0.0.1/32').size()", "1")],
        |args| {
            args.count(1)?;
            let network = args.of::<Cidr>(0)?;
            let size = network.host_mask().checked_add(1).and_then(|size| i64::try_from(size).ok());
            size.map(Value::Int)
                .ok_or_else(|| Failure::new(format!("`{network}` has more addresses than an int can count")))
        },
    ),
    entry(
        "subnet",
        &["<net.CIDR>.subnet(int, int) -> net.CIDR"],
        "The subnet of the given prefix length at the given position; negative positions count from the end.",
        &[
            ("string(cidr('10.0.0.0/16').subnet(24, 5))", "'10.0.5.0/24'"),
            ("string(cidr('10.0.0.0/16').subnet(24, -1))", "'10.0.255.0/24'"),
        ],
        |args| {
            args.count(3)?;
            let network = args.of::<Cidr>(0)?;
            let (prefix, last) = split(network, args.int(1)?)?;
            let position = args.int(2)?;
            let offset = position_in(position, last)
                .ok_or_else(|| Failure::new(format!("`{network}` has no /{prefix} at position {position}")))?;
            Ok(opaque(subnet(network, prefix, offset)))
        },
    ),
    entry(
        "subnets",
        &["<net.CIDR>.subnets(int) -> list<net.CIDR>"],
        "All subnets of the given prefix length, at most 4096.",
        &[("cidr('10.0.0.0/23').subnets(24).map(s, string(s))", "['10.0.0.0/24', '10.0.1.0/24']")],
        subnets,
    ),
    entry(
        "reverseZone",
        &["<net.CIDR>.reverseZone() -> string"],
        "The DNS zone that the addresses' PTR records are in. Zones end at bytes (IPv4) or hexadecimal digits (IPv6): of a \
         prefix between two, the zone around the network.",
        &[
            ("cidr('192.168.10.0/24').reverseZone()", "'10.168.192.in-addr.arpa'"),
            ("cidr('fd00:10::/32').reverseZone()", "'0.1.0.0.0.0.d.f.ip6.arpa'"),
        ],
        |args| {
            args.count(1)?;
            Ok(text(reverse_zone(args.of::<Cidr>(0)?)))
        },
    ),
];

/// The most subnets that one list holds.
const MAX_SUBNETS: u128 = 4096;

fn has_broadcast(network: &Cidr) -> bool {
    network.address.is_ipv4() && network.prefix < 31
}

/// The position among `0..=last`, counted from the end when it is negative.
fn position_in(position: i64, last: u128) -> Option<u128> {
    match u128::try_from(position) {
        Ok(position) => (position <= last).then_some(position),
        Err(_) => last.checked_sub(u128::from(position.unsigned_abs()) - 1),
    }
}

fn address(network: &Cidr, offset: u128) -> Value {
    let first = number(network.masked().address);
    opaque(Ip(network.address_of(first | offset)))
}

/// The new prefix, and the position of the last subnet that has it.
fn split(network: &Cidr, prefix: i64) -> Result<(u8, u128), Failure> {
    let valid = u8::try_from(prefix).ok().filter(|prefix| (network.prefix..=width(network.address)).contains(prefix));
    let Some(prefix) = valid else {
        return Err(Failure::new(format!("`{network}` cannot be split into subnets of prefix length {prefix}")));
    };
    let last = match prefix - network.prefix {
        0 => 0,
        bits => u128::MAX >> (128 - bits),
    };
    Ok((prefix, last))
}

fn subnet(network: &Cidr, prefix: u8, position: u128) -> Cidr {
    let first = number(network.masked().address);
    let shift = u32::from(width(network.address) - prefix);
    // A shift by the whole width happens only for the one subnet that is the network itself.
    let offset = position.checked_shl(shift).unwrap_or(0);
    Cidr { address: network.address_of(first | offset), prefix }
}

fn subnets(args: &Args<'_>) -> Result<Value, Failure> {
    args.count(2)?;
    let network = args.of::<Cidr>(0)?;
    let (prefix, last) = split(network, args.int(1)?)?;
    if last >= MAX_SUBNETS {
        return Err(Failure::new(format!(
            "`{network}` has more than {MAX_SUBNETS} subnets of prefix length {prefix}; take single ones with `subnet({prefix}, n)`"
        )));
    }
    args.budget.elements(usize::try_from(last).unwrap_or(usize::MAX).saturating_add(1))?;
    Ok(list((0..=last).map(|position| opaque(subnet(network, prefix, position))).collect()))
}

fn reverse_zone(network: &Cidr) -> String {
    let (digits, zone): (Vec<String>, _) = match network.masked().address {
        IpAddr::V4(address) => {
            let bytes = address.octets();
            (bytes[..usize::from(network.prefix / 8)].iter().map(u8::to_string).collect(), "in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let digits = address.octets().into_iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
            (digits.take(usize::from(network.prefix / 4)).map(|digit| format!("{digit:x}")).collect(), "ip6.arpa")
        }
    };
    digits.iter().rev().map(String::as_str).chain([zone]).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use crate::rules::expr::{Expr, Scope, to_json};

    fn eval(source: &str) -> Result<String, String> {
        let value = Expr::parse(source).unwrap().eval(&Scope::new()).map_err(|fault| fault.message)?;
        Ok(to_json(&value).unwrap().unwrap().to_string())
    }

    #[test]
    fn edges_of_the_address_space_hold() {
        for (source, result) in [
            ("string(cidr('0.0.0.0/0').nth(-1))", "\"255.255.255.255\""),
            ("string(cidr('0.0.0.0/0').firstUsable())", "\"0.0.0.1\""),
            ("string(cidr('0.0.0.0/0').lastUsable())", "\"255.255.255.254\""),
            ("cidr('0.0.0.0/0').size()", "4294967296"),
            ("cidr('0.0.0.0/0').netmask()", "\"0.0.0.0\""),
            ("cidr('0.0.0.0/0').reverseZone()", "\"in-addr.arpa\""),
            ("string(cidr('::/0').nth(-1))", "\"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\""),
            ("string(cidr('::/0').lastUsable())", "\"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff\""),
            ("cidr('::/0').netmask()", "\"::\""),
            ("string(cidr('::/0').subnet(128, -1))", "\"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128\""),
            ("string(cidr('::/0').subnet(0, 0))", "\"::/0\""),
            (
                "string(cidr('10.0.0.7/32').firstUsable()) + string(cidr('10.0.0.7/32').lastUsable())",
                "\"10.0.0.710.0.0.7\"",
            ),
            ("string(cidr('10.0.0.6/31').lastUsable())", "\"10.0.0.7\""),
            ("string(cidr('fd00::/127').firstUsable())", "\"fd00::\""),
            ("string(cidr('fd00::/127').lastUsable())", "\"fd00::1\""),
            ("string(cidr('fd00::5/128').lastUsable())", "\"fd00::5\""),
            ("cidr('fd00::/66').size()", "4611686018427387904"),
            ("cidr('10.0.0.0/8').subnets(8).size()", "1"),
            ("cidr('172.16.0.0/12').reverseZone()", "\"172.in-addr.arpa\""),
            ("string(cidr('10.1.2.3/8').nth(0))", "\"10.0.0.0\""),
        ] {
            assert_eq!(eval(source).as_deref(), Ok(result), "{source}");
        }
    }

    #[test]
    fn positions_outside_are_errors() {
        for source in [
            "cidr('10.0.0.0/24').nth(256)",
            "cidr('10.0.0.0/24').nth(-257)",
            "cidr('10.0.0.0/24').nth(-9223372036854775808)",
            "cidr('10.0.0.0/24').subnet(23, 0)",
            "cidr('10.0.0.0/24').subnet(33, 0)",
            "cidr('10.0.0.0/24').subnet(25, 2)",
            "cidr('10.0.0.0/8').subnets(24)",
            "cidr('10.0.0.0/31').broadcast()",
            "cidr('fd00::/64').broadcast()",
            "cidr('::/0').size()",
        ] {
            assert!(eval(source).is_err(), "{source}");
        }
    }
}
