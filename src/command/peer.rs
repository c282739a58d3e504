//! The user at the other end of a connection over loopback.

use std::net::SocketAddrV4;

/// The user whose socket is connected from `client` to `server`, as the system lists it; `None` if it does not.
pub fn user_of_connection(client: SocketAddrV4, server: SocketAddrV4) -> Option<u32> {
    // A program may use a socket of IPv6 for an address of IPv4.
    ["tcp", "tcp6"].iter().find_map(|name| {
        let list = std::fs::read_to_string(format!("/proc/net/{name}")).ok()?;
        user_in(&list, client, server)
    })
}

fn user_in(list: &str, client: SocketAddrV4, server: SocketAddrV4) -> Option<u32> {
    list.lines().find_map(|line| {
        // sl, local_address, rem_address, st, tx_queue:rx_queue, tr:tm->when, retrnsmt, uid.
        let fields: Vec<&str> = line.split_ascii_whitespace().take(8).collect();
        let [_, local, remote, .., user] = fields[..] else {
            return None;
        };
        let is_it = is_address(local, client) && is_address(remote, server);
        is_it.then(|| user.parse().ok()).flatten()
    })
}

/// Whether `text` is `address` as the lists have it: the four bytes as one number of the machine, in hexadecimal, behind the
/// prefix of IPv6 for addresses of IPv4, and the port.
fn is_address(text: &str, address: SocketAddrV4) -> bool {
    const PREFIX: &str = "0000000000000000FFFF0000";
    let number = u32::from_ne_bytes(address.ip().octets());
    let wanted = format!("{number:08X}:{:04X}", address.port());
    text == wanted || text.strip_prefix(PREFIX) == Some(&wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

    #[test]
    fn the_user_of_a_connection_is_found() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (SocketAddr::V4(from), SocketAddr::V4(to)) =
            (client.local_addr().unwrap(), client.peer_addr().unwrap())
        else {
            panic!("loopback is of IPv4");
        };
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(user_of_connection(from, to), Some(user));
        let other = SocketAddrV4::new(*from.ip(), to.port());
        assert_eq!(user_of_connection(other, to), None);
    }

    #[test]
    fn an_address_of_ipv4_is_found_among_those_of_ipv6() {
        let list = "  sl  local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt   uid\n\
                    3: 0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000100007F:2329 01 0:0 0:0 0 1000 0 7\n";
        let at = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
        assert_eq!(user_in(list, at(8080), at(9001)), Some(1000));
        assert_eq!(user_in(list, at(9001), at(8080)), None);
    }
}
