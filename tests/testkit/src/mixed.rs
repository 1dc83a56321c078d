//! A run whose traces have own code, libraries and the JDK: a server calls two methods of a shop, which call the JDK.
//!
//! ```text
//! Server.run ─► Filter.next ─► Filter.next ─► Orders.list ─► Prices.total ─► ArrayList.add ─► ArrayList.grow
//! ```

use std::path::Path;

use lucce_callgraph::{ContextEncoder, EncodingPolicy, MethodId, SiteId};
use lucce_tracelog::*;

use crate::{LAYOUT, Lent, count, method, writer};

const RUN: MethodId = MethodId(1);
const NEXT: MethodId = MethodId(2);
const LIST: MethodId = MethodId(3);
const TOTAL: MethodId = MethodId(4);
const ADD: MethodId = MethodId(5);
const GROW: MethodId = MethodId(6);

/// Each class with its code source: 1 is the shop's folder, 2 a library; the JDK's classes have none.
const CLASSES: [(u32, &str, &str, u32); 5] = [
    (1, "org.acme.web.Server", "Server.java", 2),
    (2, "org.acme.web.Filter", "Filter.java", 2),
    (3, "shop.Orders", "Orders.java", 1),
    (4, "shop.Prices", "Prices.java", 1),
    (5, "java.util.ArrayList", "ArrayList.java", 0),
];

/// Each site: id, method, and what it does there. Its line is its number.
fn sites() -> Vec<SiteRecord<'static>> {
    let object = || SiteKind::Array("[Ljava/lang/Object;".into());
    let sites = [
        (10, RUN, SiteKind::Call),
        (20, NEXT, SiteKind::Call),
        (21, NEXT, SiteKind::Call),
        (22, NEXT, SiteKind::Array("[B".into())),
        (30, LIST, SiteKind::Call),
        (31, LIST, SiteKind::Array("[C".into())),
        (40, TOTAL, SiteKind::Call),
        (50, ADD, SiteKind::Call),
        (51, ADD, object()),
        (60, GROW, object()),
    ];
    let site = |(id, method, kind)| SiteRecord {
        id: SiteId(id),
        method,
        bci: id as i32,
        line: Some(id as i32),
        kind,
    };
    sites.into_iter().map(site).collect()
}

/// Writes the run: 1024 bytes in `Prices.total`, 624 of them in `ArrayList.grow` and 400 in `ArrayList.add`; 312 in
/// `Orders.list`; 48 in `Filter.next`, without own code.
pub fn mixed(path: &Path) {
    let mut writer = writer(path);
    let counters = writer.add_counters(ThreadId(1), 6).unwrap();
    for (key, value) in [("jvm", "OpenJDK 17.0.21"), ("command", "shop.Main")] {
        let meta = MetaRecord {
            key: key.into(),
            value: value.into(),
        };
        writer.append(meta).unwrap();
    }
    for (id, location) in [(1, "file:/srv/shop/classes/"), (2, "file:/srv/lib/web.jar")] {
        let source = CodeSourceRecord {
            id: CodeSourceId(id),
            location: location.into(),
        };
        writer.append(source).unwrap();
    }
    for (id, name, file, source) in CLASSES {
        let class = ClassRecord {
            id: ClassId(id),
            loader: LoaderId(source),
            name: name.into(),
            source_file: Some(file.into()),
        };
        writer.append(class).unwrap();
        if source > 0 {
            let source = CodeSourceId(source);
            let class = ClassId(id);
            writer.append(ClassSource { class, source }).unwrap();
        }
    }
    let methods = [
        (RUN, 1, "run"),
        (NEXT, 2, "next"),
        (LIST, 3, "list"),
        (TOTAL, 4, "total"),
        (ADD, 5, "add"),
        (GROW, 5, "grow"),
    ];
    methods
        .iter()
        .for_each(|(id, class, name)| method(&mut writer, *id, *class, name, 1, &[]));
    sites()
        .into_iter()
        .for_each(|site| writer.append(site).unwrap());
    let thread = ThreadRecord {
        id: ThreadId(1),
        name: "http-1".into(),
        is_virtual: false,
    };
    writer.append(thread).unwrap();
    let encoder = ContextEncoder::new(LAYOUT, EncodingPolicy::LUCCE, Lent(Some(writer)));
    let number = |calls: &[(u32, MethodId)], event: u32| {
        let (mut at, mut caller) = (encoder.root_context(RUN), RUN);
        for &(site, callee) in calls {
            at = encoder.encode_call(at, SiteId(site), caller, callee);
            caller = callee;
        }
        encoder.encode_event(at, SiteId(event), caller)
    };
    let list = [(10, NEXT), (20, NEXT), (21, LIST)];
    let add = [list.as_slice(), &[(30, TOTAL), (40, ADD)]].concat();
    let grow = [add.as_slice(), &[(50, GROW)]].concat();
    let ids = [
        (number(&grow, 60), 6, 104),
        (number(&add, 51), 1, 400),
        (number(&list, 31), 3, 104),
        (number(&list[..2], 22), 1, 48),
    ];
    let mut writer = encoder.with_journal(|lent| lent.0.take().unwrap());
    count(&counters, &ids);
    writer.append(EndRecord).unwrap();
    writer.close().unwrap();
}
