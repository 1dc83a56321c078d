//! `requests=auto`: requests, messages and jobs that the program receives.
//!
//! A hook at the entry of a method that receives requests (`lucce_instrument::kinds::request_entries`) opens a request, and its ends
//! close it. The thread's events in between have the tag `request=NAME`. Each request is counted once, as `request`.
//!
//! Entries nest: a server's or servlet's entry calls a framework, which calls the handler. The outermost entry's frame
//! is the request's. If that entry is a server's or a servlet's, a handler within it that has a pattern refines the name:
//! from then on, until the request ends, the tag has the handler's pattern, and the request is counted in the
//! handler's context. A request without such a handler is counted when it ends, in the context of the innermost
//! entry. All other entries within a request do nothing.
//!
//! No value of a request is in its name. The pattern is from an annotation, or registered with the server. Unknown HTTP
//! methods are `OTHER`.

use std::ffi::CStr;
use std::sync::atomic::Ordering;

use jvmti_bindings::sys::jni::jobject;
use lucce_callgraph::ContextId;
use lucce_instrument::RequestEntry;
use lucce_instrument::kinds::REQUEST;
use lucce_instrument::kinds::request_entries::{HTTP_METHODS, OTHER_METHOD};
use lucce_jvmti::JniEnvironment;

use crate::counting::CountingParts;
use crate::registry::RegisteredSiteKind;
use crate::thread::{OpenRequest, ThreadState, tag_scope, tags};

/// The key of the tag.
const TAG_KEY: &str = "request";

/// An entry of a method that receives requests.
#[derive(Clone, Copy)]
pub struct RequestBegin {
    pub number: ContextId,
    pub site: u32,
    /// The slot of its frame.
    pub slot: u64,
}

/// The name of a request, by its entry.
pub enum RequestName {
    /// A handler's HTTP method, unless it handles several, and its pattern.
    Route(String),
    Named(String),
    /// A server's or a servlet's: HTTP method and registered path.
    Server(&'static str, String),
}

/// The name of a request that begins at `site`; `argument` is the method's first parameter, if the name depends on it.
/// Calls methods of the program. `None`: the site is no entry.
pub fn name_request(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    site: u32,
    argument: jobject,
) -> Option<RequestName> {
    let (entry, class) = {
        let registry = agent.core.registry();
        let info = registry.site(site)?;
        let RegisteredSiteKind::Request(text) = info.kind else {
            return None;
        };
        let entry = RequestEntry::from_text(registry.name_text(text))?;
        let method = registry.method(info.method)?;
        let class = registry.class(method.class)?;
        (entry, registry.name_text(class.name).replace('/', "."))
    };
    Some(match entry {
        RequestEntry::Route(name) => RequestName::Route(name),
        RequestEntry::Named(name) => RequestName::Named(name),
        RequestEntry::Exchange => {
            let context = (c"getHttpContext", c"()Lcom/sun/net/httpserver/HttpContext;");
            let path = read_registered(env, argument, &[context], c"getPath");
            let method = http_method(env, argument, c"getRequestMethod");
            RequestName::Server(method, path.unwrap_or(class))
        }
        RequestEntry::Servlet => {
            let jakarta = (
                c"getHttpServletMapping",
                c"()Ljakarta/servlet/http/HttpServletMapping;",
            );
            let javax = (
                c"getHttpServletMapping",
                c"()Ljavax/servlet/http/HttpServletMapping;",
            );
            let path = read_registered(env, argument, &[jakarta, javax], c"getPattern");
            let method = http_method(env, argument, c"getMethod");
            RequestName::Server(method, path.unwrap_or(class))
        }
    })
}

/// The HTTP method that this method of `argument` returns.
fn http_method(env: JniEnvironment, argument: jobject, getter: &CStr) -> &'static str {
    let name = read_text(env, argument, getter);
    let mut known = HTTP_METHODS.into_iter();
    let method = name.and_then(|name| known.find(|method| *method == name));
    method.unwrap_or(OTHER_METHOD)
}

/// The text that `text_getter` returns for the object that the first existing getter of `argument` returns.
fn read_registered(
    env: JniEnvironment,
    argument: jobject,
    getters: &[(&CStr, &CStr)],
    text_getter: &CStr,
) -> Option<String> {
    let mut objects = getters
        .iter()
        .filter_map(|(name, descriptor)| call_getter(env, argument, name, descriptor));
    let object = objects.next()?;
    let text = read_text(env, object, text_getter);
    env.delete_local(object);
    text
}

/// The text that a method without parameters returns, at most one character longer than a tag.
fn read_text(env: JniEnvironment, object: jobject, getter: &CStr) -> Option<String> {
    let text = call_getter(env, object, getter, c"()Ljava/lang/String;")?;
    let read = env.read_string(text, tags::LONGEST + 1);
    env.delete_local(text);
    Some(read)
}

/// The result of a method without parameters. `None`: there is no such method, it has thrown, or returned null.
fn call_getter(
    env: JniEnvironment,
    object: jobject,
    name: &CStr,
    descriptor: &CStr,
) -> Option<jobject> {
    if object.is_null() {
        return None;
    }
    let class = env.class_of(object);
    let method = env.method_id(class, name, descriptor);
    env.delete_local(class);
    let result = method.map(|method| env.call_object_as_is(object, method, &[]));
    env.clear_exception();
    result.filter(|object| !object.is_null())
}

/// A method that receives requests begins in the current thread.
pub fn open_request(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    begin: RequestBegin,
    name: &RequestName,
) {
    // Relaxed: only this thread uses the word.
    let outer = state.request_slot.load(Ordering::Relaxed);
    // A frame at or above the new one has ended without a report.
    if outer != 0 && outer >= begin.slot {
        close_request(agent, env, state);
    }
    match (state.request.get(), name) {
        (None, RequestName::Server(method, path)) => {
            let request = OpenRequest {
                tag: open_tag(agent, env, state, &format!("{method} {path}")),
                number: Some(begin.number),
                method: Some(method),
            };
            put_request(state, request, begin.slot);
        }
        (None, RequestName::Route(text) | RequestName::Named(text)) => {
            let request = OpenRequest {
                tag: open_tag(agent, env, state, text),
                number: None,
                method: None,
            };
            put_request(state, request, begin.slot);
            count_request(agent, env, state, begin.number);
        }
        (Some(request), RequestName::Route(pattern)) if request.number.is_some() => {
            let name = match request.method.filter(|_| pattern.starts_with('/')) {
                Some(method) => format!("{method} {pattern}"),
                None => pattern.clone(),
            };
            // It closes with the outer tag.
            open_tag(agent, env, state, &name);
            state.request.set(Some(OpenRequest {
                number: None,
                ..request
            }));
            count_request(agent, env, state, begin.number);
        }
        (Some(request), RequestName::Server(..)) if request.number.is_some() => {
            state.request.set(Some(OpenRequest {
                number: Some(begin.number),
                ..request
            }));
        }
        _ => {}
    }
}

fn put_request(state: &ThreadState, request: OpenRequest, slot: u64) {
    state.request.set(Some(request));
    state.request_slot.store(slot, Ordering::Relaxed);
}

fn open_tag(agent: CountingParts<'_>, env: JniEnvironment, state: &ThreadState, name: &str) -> u64 {
    tag_scope::open_tag(agent.thread_parts(), env, state, (TAG_KEY, name))
}

/// The current thread's request ends.
pub fn close_request(agent: CountingParts<'_>, env: JniEnvironment, state: &ThreadState) {
    state.request_slot.store(0, Ordering::Relaxed);
    let Some(request) = state.request.take() else {
        return;
    };
    if let Some(number) = request.number {
        count_request(agent, env, state, number);
    }
    tag_scope::close_tag(agent.thread_parts(), env, state, request.tag);
}

fn count_request(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    state: &ThreadState,
    number: ContextId,
) {
    if agent.core.event_mask.is_enabled(REQUEST.mask_bit) {
        let event = agent.find_or_add_event_type(REQUEST.name, "", "");
        // A full log is reported by the event's own count of dropped events.
        let _ = agent.count_event(env, state, number, event, 0);
    }
}
