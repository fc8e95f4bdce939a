//! What requests are told, by the policies that apply to them.

/// The policies of one path, the requests to it, and what the last of them is told. Seconds are exact for
/// a machine that takes no time.
pub(crate) struct Vector {
    pub(crate) path: &'static str,
    /// Name, limit and cost of each policy.
    pub(crate) policies: &'static [(&'static str, Limit, u64)],
    /// How many requests are sent; the last one counts.
    pub(crate) requests: u32,
    pub(crate) status: u16,
    /// `RateLimit-Policy` as the drafts 08 to 11 and as draft 06 write it.
    pub(crate) policy: &'static str,
    pub(crate) plain_policy: &'static str,
    /// `RateLimit`.
    pub(crate) state: &'static str,
    /// Limit, remaining and reset of the older families.
    pub(crate) triple: (u64, u64, Option<u64>),
    pub(crate) retry_after: Option<u64>,
}

#[derive(Clone, Copy)]
pub(crate) enum Limit {
    Bucket(u64, &'static str),
    Blocked,
}

use Limit::{Blocked, Bucket};

pub(crate) const VECTORS: [Vector; 10] = [
    Vector {
        path: "/vector-5",
        policies: &[("hourly", Bucket(100, "100/h"), 1)],
        requests: 1,
        status: 200,
        policy: r#""hourly";q=100;w=3600"#,
        plain_policy: "100;w=3600",
        state: r#""hourly";r=99;t=3564"#,
        triple: (100, 99, Some(3564)),
        retry_after: None,
    },
    Vector {
        path: "/vector-7",
        policies: &[("api", Bucket(10, "3/s"), 1)],
        requests: 1,
        status: 200,
        policy: r#""api";q=10;w=4"#,
        plain_policy: "10;w=4",
        state: r#""api";r=9;t=4"#,
        triple: (10, 9, Some(4)),
        retry_after: None,
    },
    Vector {
        path: "/vector-2-last-unit",
        policies: &[("last", Bucket(2, "1/m"), 1)],
        requests: 2,
        status: 200,
        policy: r#""last";q=2;w=120"#,
        plain_policy: "2;w=120",
        state: r#""last";r=0;t=60"#,
        triple: (2, 0, Some(60)),
        retry_after: None,
    },
    Vector {
        path: "/vector-3-none-left",
        policies: &[("none", Bucket(2, "1/m"), 1)],
        requests: 3,
        status: 429,
        policy: r#""none";q=2;w=120"#,
        plain_policy: "2;w=120",
        state: r#""none";r=0;t=60"#,
        triple: (2, 0, Some(60)),
        retry_after: Some(60),
    },
    Vector {
        path: "/vector-8-cost-above-remaining",
        policies: &[("ops", Bucket(10, "10/h"), 7)],
        requests: 2,
        status: 429,
        policy: r#""ops";q=10;w=3600"#,
        plain_policy: "10;w=3600",
        state: r#""ops";r=3;t=1440"#,
        triple: (10, 3, Some(1440)),
        retry_after: Some(1440),
    },
    Vector {
        path: "/vector-10-one-violated",
        policies: &[("burst", Bucket(10, "10/m"), 10), ("hour", Bucket(1000, "1000/h"), 500)],
        requests: 2,
        status: 429,
        policy: r#""burst";q=10;w=60, "hour";q=1000;w=3600"#,
        plain_policy: "10;w=60, 1000;w=3600",
        state: r#""burst";r=0;t=60"#,
        triple: (10, 0, Some(60)),
        retry_after: Some(60),
    },
    Vector {
        path: "/vector-11-both-violated",
        policies: &[("minute", Bucket(10, "10/m"), 5), ("day", Bucket(1000, "1000/d"), 400)],
        requests: 3,
        status: 429,
        policy: r#""minute";q=10;w=60, "day";q=1000;w=86400"#,
        plain_policy: "10;w=60, 1000;w=86400",
        state: r#""minute";r=0;t=30, "day";r=200;t=17280"#,
        triple: (10, 0, Some(30)),
        retry_after: Some(17280),
    },
    Vector {
        path: "/vector-12-clamped",
        policies: &[("big", Bucket(4_000_000_000_000_000, "1000000/s"), 1)],
        requests: 1,
        status: 200,
        policy: r#""big";q=999999999999999;w=4000000000"#,
        plain_policy: "999999999999999;w=4000000000",
        state: r#""big";r=999999999999999;t=4000000000"#,
        triple: (999_999_999_999_999, 999_999_999_999_999, Some(4_000_000_000)),
        retry_after: None,
    },
    Vector {
        path: "/vector-13-escaped",
        policies: &[(r#"a"b\c"#, Bucket(10, "10/m"), 1)],
        requests: 1,
        status: 200,
        policy: r#""a\"b\\c";q=10;w=60"#,
        plain_policy: "10;w=60",
        state: r#""a\"b\\c";r=9;t=54"#,
        triple: (10, 9, Some(54)),
        retry_after: None,
    },
    Vector {
        path: "/blocked",
        policies: &[("nobody", Blocked, 1)],
        requests: 1,
        status: 429,
        policy: r#""nobody";q=0"#,
        plain_policy: "0;w=1",
        state: r#""nobody";r=0"#,
        triple: (0, 0, None),
        retry_after: None,
    },
];
