//! Policies that do not apply to a request cost it nothing that is read from the proxy.

mod gateway;

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

use limiter::request::{Attributes, Demand, Given, demands};

/// What was read, in order.
type Readings = Rc<RefCell<Vec<String>>>;

/// A request that tells what is read of it.
struct Watched(Given, Readings);

impl Watched {
    fn note(&self, name: impl Into<String>) {
        self.1.borrow_mut().push(name.into());
    }
}

impl Attributes for Watched {
    fn method(&mut self) -> Vec<u8> {
        self.note("method");
        self.0.method()
    }

    fn target(&mut self) -> Vec<u8> {
        self.note("target");
        self.0.target()
    }

    fn authority(&mut self) -> Vec<u8> {
        self.note("authority");
        self.0.authority()
    }

    fn address(&mut self) -> Option<IpAddr> {
        self.note("address");
        self.0.address()
    }

    fn header(&mut self, name: &str) -> Option<Vec<u8>> {
        self.note(name);
        self.0.header(name)
    }

    fn first_value(&mut self, name: &str) -> Option<Vec<u8>> {
        self.note(format!("first {name}"));
        self.0.first_value(name)
    }

    fn route(&mut self) -> Vec<u8> {
        self.note("route");
        self.0.route()
    }

    fn metadata(&mut self, path: &[&str]) -> Option<Vec<u8>> {
        self.note(path.join("."));
        self.0.metadata(path)
    }

    fn route_metadata(&mut self, path: &[&str]) -> Option<Vec<u8>> {
        self.note(path.join("."));
        self.0.route_metadata(path)
    }
}

#[test]
fn fifty_policies_read_no_more_than_the_two_of_them_that_apply() {
    let read = |policies: limiter::policies::Policies| {
        let readings = Readings::default();
        let mut watched = Watched(gateway::request(), Rc::clone(&readings));
        let demands: Vec<Demand> = demands(&policies, &mut watched, 0).collect();
        let applied: Vec<String> =
            demands.iter().map(|demand| policies.get(demand.policy).unwrap().name.clone()).collect();
        (applied, readings.take())
    };
    let few = read(gateway::two());
    assert_eq!(few.0, ["per-ip", "orders"]);
    assert_eq!(few.1, ["method", "target", "authority", "x-client", "address", "x-api-key"]);
    let mut many = read(gateway::fifty());
    many.0.sort();
    assert_eq!(many.0, ["orders", "per-ip"]);
    assert_eq!(many.1, few.1);
}
