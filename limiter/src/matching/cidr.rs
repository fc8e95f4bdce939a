//! Blocks of addresses (RFC 4632; RFC 4291, section 2.3).

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A block of addresses, as `10.0.0.0/8`. An IPv4 address that is mapped into IPv6 is the IPv4 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    network: IpAddr,
    bits: u8,
}

/// Why a text is no block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CidrError {
    /// Not an address, or not an address, a slash and a number of bits.
    Malformed,
    /// More bits than the address has.
    TooManyBits {
        /// The most.
        most: u8,
    },
    /// The address is one of the block, but not its first.
    HostBits {
        /// The block that it is in.
        block: Cidr,
    },
}

impl Cidr {
    /// Whether an address is in the block.
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(address.to_canonical(), self.bits) == Some(self.network)
    }
}

impl core::str::FromStr for Cidr {
    type Err = CidrError;

    /// Reads `10.0.0.0/8`, `2001:db8::/32`, or an address alone.
    fn from_str(text: &str) -> Result<Self, CidrError> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let written: IpAddr = address.parse().map_err(|_| CidrError::Malformed)?;
        let most = if written.is_ipv4() { 32 } else { 128 };
        let is_number =
            |bits: &&str| (1..=3).contains(&bits.len()) && bits.bytes().all(|b| b.is_ascii_digit());
        let bits = match bits {
            None => most,
            Some(bits) => {
                let bits = Some(bits).filter(is_number).and_then(|bits| bits.parse::<u16>().ok());
                let bits = bits.ok_or(CidrError::Malformed)?;
                u8::try_from(bits).ok().filter(|bits| *bits <= most).ok_or(CidrError::TooManyBits { most })?
            }
        };
        // Requests' addresses are compared in this form.
        let (address, bits) = match written.to_canonical() {
            IpAddr::V4(address) if written.is_ipv6() && bits >= 96 => (IpAddr::V4(address), bits - 96),
            IpAddr::V4(_) | IpAddr::V6(_) => (written, bits),
        };
        let network = masked(address, bits).ok_or(CidrError::TooManyBits { most })?;
        let block = Self { network, bits };
        if network == address { Ok(block) } else { Err(CidrError::HostBits { block }) }
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

/// The first address of the block of so many bits; `None` where the address has less.
fn masked(address: IpAddr, bits: u8) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(address) => {
            let host_bits = 32_u32.checked_sub(bits.into())?;
            let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask))
        }
        IpAddr::V6(address) => {
            let host_bits = 128_u32.checked_sub(bits.into())?;
            let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(address) & mask))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    fn contains(block: &str, address: &str) -> bool {
        cidr(block).contains(address.parse().unwrap())
    }

    #[test]
    fn a_block_holds_its_addresses_and_no_others() {
        assert!(contains("10.0.0.0/8", "10.255.255.255"));
        assert!(!contains("10.0.0.0/8", "11.0.0.0"));
        assert!(contains("203.0.113.7", "203.0.113.7"));
        assert!(!contains("203.0.113.7", "203.0.113.8"));
        assert!(contains("0.0.0.0/0", "255.0.0.1"));
        assert!(!contains("0.0.0.0/0", "2001:db8::1"), "families are kept apart");
        assert!(contains("2001:db8::/32", "2001:db8:ffff::1"));
        assert!(!contains("2001:db8::/32", "2001:db9::"));
        assert!(contains("::/0", "2001:db8::1"));
        assert!(contains("2001:db8::1", "2001:db8::1"));
    }

    #[test]
    fn an_address_that_is_mapped_into_ipv6_is_the_same_address() {
        assert!(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(contains("::ffff:10.0.0.0/104", "10.1.2.3"));
        assert_eq!(cidr("::ffff:10.0.0.0/104").to_string(), "10.0.0.0/8");
    }

    #[test]
    fn what_is_no_block_is_refused_by_its_kind() {
        for text in
            ["", "10.0.0", "10.0.0.0/", "10.0.0.0/8/8", "10.0.0.0/-1", "10.0.0.0/+8", "x/8", "10.0.0.0/0008"]
        {
            assert_eq!(text.parse::<Cidr>(), Err(CidrError::Malformed), "{text:?}");
        }
        assert_eq!("10.0.0.0/33".parse::<Cidr>(), Err(CidrError::TooManyBits { most: 32 }));
        assert_eq!("::/129".parse::<Cidr>(), Err(CidrError::TooManyBits { most: 128 }));
        assert_eq!("10.1.0.0/8".parse::<Cidr>(), Err(CidrError::HostBits { block: cidr("10.0.0.0/8") }));
        assert_eq!(
            "2001:db8::1/64".parse::<Cidr>(),
            Err(CidrError::HostBits { block: cidr("2001:db8::/64") })
        );
    }
}
