//! Addresses of IPv4 and IPv6, in one order.

use std::net::{IpAddr, Ipv6Addr};
use std::ops::RangeInclusive;

/// The number of an address.
pub(in crate::record) fn parse(text: &[u8]) -> Option<u128> {
    std::str::from_utf8(text).ok()?.parse().ok().map(number)
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(four) => four.to_ipv6_mapped().to_bits(),
        IpAddr::V6(six) => six.to_bits(),
    }
}

/// A block such as `10.1.0.0/16` or `2001:db8::/32`.
pub(super) fn block(text: &str) -> Result<RangeInclusive<u128>, String> {
    let wrong = || format!("`{text}` is not a block such as 10.1.0.0/16 or 2001:db8::/32");
    let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
    let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
    let bits: u32 = bits.trim().parse().map_err(|_| wrong())?;
    let width: u32 = if address.is_ipv4() { 32 } else { 128 };
    let free = width
        .checked_sub(bits)
        .ok_or_else(|| format!("{text}: an address of its kind has {width} bits, not {bits}"))?;
    let rest = if free == 128 { u128::MAX } else { (1_u128 << free) - 1 };
    let first = number(address);
    if first & rest != 0 {
        let base = Ipv6Addr::from_bits(first & !rest);
        let base = base.to_ipv4_mapped().map_or(IpAddr::V6(base), IpAddr::V4);
        return Err(format!(
            "{text}: the address has bits set behind the first {bits}; did you mean {base}/{bits}?"
        ));
    }
    Ok(first..=first | rest)
}
