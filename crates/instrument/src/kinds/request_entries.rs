//! Recognizes methods that receive requests, by their descriptors, superclasses and annotations.
//!
//! The name of a request is known from the class alone, or from the server's registration: it never contains a value
//! of one request. Names from annotations are in the class file; for servlets and HTTP servers the agent asks for the
//! registered pattern.

use lucce_bytecode::{AnnotationTexts, ClassFile, ClassFileMethod};

use super::AnalyzedMethod;
use crate::instrumentation::RequestEntry;

const STATIC: u16 = 0x0008;
const BRIDGE_OR_SYNTHETIC: u16 = 0x1040;

/// `com.sun.net.httpserver` calls every handler, lambdas included, through this class.
const HANDLER_CHAIN: &str = "com/sun/net/httpserver/Filter$Chain";
const EXCHANGE: &str = "(Lcom/sun/net/httpserver/HttpExchange;)V";

/// Descriptors of `Servlet.service` and `HttpServlet.service`.
const SERVICE: [&str; 4] = [
    "(Ljakarta/servlet/ServletRequest;Ljakarta/servlet/ServletResponse;)V",
    "(Ljakarta/servlet/http/HttpServletRequest;Ljakarta/servlet/http/HttpServletResponse;)V",
    "(Ljavax/servlet/ServletRequest;Ljavax/servlet/ServletResponse;)V",
    "(Ljavax/servlet/http/HttpServletRequest;Ljavax/servlet/http/HttpServletResponse;)V",
];

/// Methods that are named after their class: name, descriptor, and the first word of the request's name.
const NAMED: [(&str, &str, &str); 7] = [
    ("onMessage", "(Ljakarta/jms/Message;)V", "jms"),
    ("onMessage", "(Ljavax/jms/Message;)V", "jms"),
    (
        "execute",
        "(Lorg/quartz/JobExecutionContext;)V",
        "scheduled",
    ),
    (
        "channelRead0",
        "(Lio/netty/channel/ChannelHandlerContext;Lio/netty/handler/codec/http/FullHttpRequest;)V",
        "netty",
    ),
    (
        "channelRead0",
        "(Lio/netty/channel/ChannelHandlerContext;Lio/netty/handler/codec/http/HttpRequest;)V",
        "netty",
    ),
    (
        "channelRead0",
        "(Lio/netty/channel/ChannelHandlerContext;Lio/netty/handler/codec/http/HttpObject;)V",
        "netty",
    ),
    (
        "messageReceived",
        "(Lio/netty/channel/ChannelHandlerContext;Lio/netty/handler/codec/http/FullHttpRequest;)V",
        "netty",
    ),
];

/// Annotations of Spring's handler methods, with their HTTP method; empty: an element of the annotation has it.
const SPRING_MAPPINGS: [(&str, &str); 6] = [
    ("RequestMapping", ""),
    ("GetMapping", "GET"),
    ("PostMapping", "POST"),
    ("PutMapping", "PUT"),
    ("DeleteMapping", "DELETE"),
    ("PatchMapping", "PATCH"),
];
const SPRING: &str = "org/springframework/web/bind/annotation/";
const JAX_RS: [&str; 2] = ["jakarta/ws/rs/", "javax/ws/rs/"];

/// Annotations of listeners: type, first word of the name, and elements with what they listen to.
const LISTENERS: [(&str, &str, &[&str]); 3] = [
    (
        "org/springframework/kafka/annotation/KafkaListener",
        "kafka",
        &["topics", "topicPattern"],
    ),
    (
        "org/springframework/jms/annotation/JmsListener",
        "jms",
        &["destination"],
    ),
    (
        "org/springframework/amqp/rabbit/annotation/RabbitListener",
        "rabbit",
        &["queues"],
    ),
];

/// Annotations of jobs.
const JOBS: [&str; 6] = [
    "org/springframework/scheduling/annotation/Scheduled",
    "org/springframework/scheduling/annotation/Schedules",
    "io/quarkus/scheduler/Scheduled",
    "io/micronaut/scheduling/annotation/Scheduled",
    "jakarta/ejb/Schedule",
    "javax/ejb/Schedule",
];

/// HTTP methods that names distinguish.
pub const HTTP_METHODS: [&str; 9] = [
    "GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "CONNECT",
];
/// In place of any other HTTP method.
pub const OTHER_METHOD: &str = "OTHER";

/// Returns what requests of the method are; `None`: it receives none.
pub fn find_request_entry(at: &AnalyzedMethod<'_>) -> Option<RequestEntry> {
    let (class, method) = (at.file, at.method);
    let (name, descriptor) = (&*method.name, &*method.descriptor);
    if at.class == HANDLER_CHAIN {
        let is_entry = name == "doFilter" && descriptor == EXCHANGE;
        return is_entry.then_some(RequestEntry::Exchange);
    }
    // Other classes with a role name are the JDK's.
    if !at.class.is_empty()
        || method.code.is_none()
        || method.access & BRIDGE_OR_SYNTHETIC != 0
        || name.starts_with('<')
    {
        return None;
    }
    if let Some(entry) = find_annotated_entry(class, method) {
        return Some(entry);
    }
    if method.access & STATIC != 0 {
        return None;
    }
    if name == "handle" && descriptor == EXCHANGE {
        return Some(RequestEntry::Exchange);
    }
    if name == "service" && SERVICE.contains(&descriptor) {
        return Some(RequestEntry::Servlet);
    }
    if let Some((.., kind)) = NAMED
        .iter()
        .find(|(known, types, _)| (*known, *types) == (name, descriptor))
    {
        let class = class.name().replace('/', ".");
        return Some(RequestEntry::Named(format!("{kind} {class}")));
    }
    find_grpc_entry(class, method)
}

/// A service of gRPC overrides a method of the generated class `GreeterGrpc$GreeterImplBase`.
fn find_grpc_entry(class: &ClassFile<'_>, method: &ClassFileMethod<'_>) -> Option<RequestEntry> {
    let base = class.super_name()?;
    let (_, base) = base.rsplit_once('$')?;
    let service = base.strip_suffix("ImplBase")?;
    let observes = method.descriptor.contains("Lio/grpc/stub/StreamObserver;");
    observes.then(|| RequestEntry::Named(format!("grpc {service}/{}", method.name)))
}

fn find_annotated_entry(
    class: &ClassFile<'_>,
    method: &ClassFileMethod<'_>,
) -> Option<RequestEntry> {
    let annotations = class.annotations_of_method(method);
    // The class's annotations are read only if they matter.
    annotations
        .iter()
        .find_map(|annotation| spring_route(class, annotation))
        .or_else(|| jax_rs_route(class, &annotations))
        .or_else(|| listener_name(class, method, &annotations))
}

/// The type of an annotation: `org/acme/Annotation`.
fn annotation_type<'t>(annotation: &'t AnnotationTexts<'_>) -> &'t str {
    let name = annotation.descriptor.strip_prefix('L');
    name.and_then(|name| name.strip_suffix(';')).unwrap_or("")
}

fn spring_route(class: &ClassFile<'_>, annotation: &AnnotationTexts<'_>) -> Option<RequestEntry> {
    let name = annotation_type(annotation).strip_prefix(SPRING)?;
    let (_, method) = SPRING_MAPPINGS.iter().find(|(known, _)| *known == name)?;
    let base = class.annotations().into_iter().find(|annotation| {
        annotation_type(annotation).strip_prefix(SPRING) == Some("RequestMapping")
    });
    let base = base.as_ref();
    let methods: Vec<&str> = match method.is_empty() {
        true => [Some(annotation), base]
            .into_iter()
            .flatten()
            .flat_map(|of| of.texts("method"))
            .map(|name| &**name)
            .collect(),
        false => vec![*method],
    };
    let path = join_paths(
        &base.map(spring_path).unwrap_or_default(),
        &spring_path(annotation),
    );
    Some(RequestEntry::Route(route_name(&methods, &path)))
}

fn spring_path(annotation: &AnnotationTexts<'_>) -> String {
    let paths = match annotation.texts("path") {
        [] => annotation.texts("value"),
        paths => paths,
    };
    let paths = paths.iter().map(|path| path.trim_matches('/'));
    paths.collect::<Vec<_>>().join("|")
}

fn jax_rs_route(
    class: &ClassFile<'_>,
    annotations: &[AnnotationTexts<'_>],
) -> Option<RequestEntry> {
    let mut methods = annotations.iter().filter_map(jax_rs_name);
    let method = methods.find(|name| HTTP_METHODS.contains(name))?;
    let base = jax_rs_path(&class.annotations());
    let path = join_paths(&base, &jax_rs_path(annotations));
    Some(RequestEntry::Route(route_name(&[method], &path)))
}

fn jax_rs_path(annotations: &[AnnotationTexts<'_>]) -> String {
    let mut annotations = annotations.iter();
    let path = annotations.find(|one| jax_rs_name(one) == Some("Path"));
    path.map_or_else(String::new, |path| path.texts("value").concat())
}

/// The simple name of an annotation of JAX-RS.
fn jax_rs_name<'t>(annotation: &'t AnnotationTexts<'_>) -> Option<&'t str> {
    let name = annotation_type(annotation);
    JAX_RS.iter().find_map(|package| name.strip_prefix(package))
}

fn listener_name(
    class: &ClassFile<'_>,
    method: &ClassFileMethod<'_>,
    annotations: &[AnnotationTexts<'_>],
) -> Option<RequestEntry> {
    let qualified = || format!("{}.{}", class.name().replace('/', "."), method.name);
    annotations.iter().find_map(|annotation| {
        let name = annotation_type(annotation);
        if JOBS.contains(&name) {
            return Some(RequestEntry::Named(format!("scheduled {}", qualified())));
        }
        let (_, kind, elements) = LISTENERS.iter().find(|(known, ..)| *known == name)?;
        let sources = elements
            .iter()
            .flat_map(|element| annotation.texts(element));
        let sources: Vec<&str> = sources.map(|source| &**source).collect();
        let source = match sources.is_empty() {
            true => qualified(),
            false => sources.join("|"),
        };
        Some(RequestEntry::Named(format!("{kind} {source}")))
    })
}

/// `GET /orders/{id}`; several HTTP methods are separated by `|`.
fn route_name(methods: &[&str], path: &str) -> String {
    match methods.is_empty() {
        true => path.to_owned(),
        false => format!("{} {path}", methods.join("|")),
    }
}

/// Joins the path of a class and of a method: `/orders` and `{id}` are `/orders/{id}`.
fn join_paths(base: &str, path: &str) -> String {
    let (base, path) = (base.trim_matches('/'), path.trim_matches('/'));
    match (base, path) {
        ("", path) => format!("/{path}"),
        (base, "") => format!("/{base}"),
        (base, path) => format!("/{base}/{path}"),
    }
}

#[cfg(test)]
mod request_entries_tests {
    use super::*;

    #[test]
    fn paths_are_joined_by_one_slash() {
        let joined = [
            ("", ""),
            ("", "a"),
            ("/a/", ""),
            ("/a/", "/b/{c}"),
            ("a", "b"),
        ];
        let joined = joined.map(|(base, path)| join_paths(base, path));
        assert_eq!(joined, ["/", "/a", "/a", "/a/b/{c}", "/a/b"]);
    }

    #[test]
    fn entries_have_a_text() {
        for entry in [
            RequestEntry::Route("GET /ä/{id}".into()),
            RequestEntry::Named("kafka orders".into()),
            RequestEntry::Exchange,
            RequestEntry::Servlet,
        ] {
            assert_eq!(RequestEntry::from_text(&entry.to_text()), Some(entry));
        }
        assert_eq!(RequestEntry::from_text(""), None);
        assert_eq!(RequestEntry::from_text("ä"), None);
    }
}
