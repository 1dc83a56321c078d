//! The size of the objects of a site, measured once for each site on an instance made for this purpose.

use jvmti_bindings::sys::jni::{jclass, jobject, jvalue};
use lucce_callgraph::{ContextId, MethodId};
use lucce_jvmti::{JniEnvironment, c_string};

use crate::counting::CountingParts;
use crate::registry::{ClassLoaderId, RegisteredSiteKind};

/// What the events of a context allocate.
pub enum ContextAllocation {
    /// Bytes of each object in addition to the counter's sum, and the descriptor.
    Object {
        size: u64,
        of: String,
    },
    /// Nothing: sites of other events have counters as well.
    Nothing,
    Unknown,
}

/// What the events of a context, which have a counter without a type, allocate. The caller holds no lock.
pub fn find_context_allocation(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    number: ContextId,
) -> ContextAllocation {
    let frames = agent.core.encoder.decode_context(number, MethodId::EVENT);
    let site = frames.ok().and_then(|frames| Some(frames.first()?.site.0));
    match site {
        Some(site) => find_site_allocation(agent, env, site),
        None => ContextAllocation::Unknown,
    }
}

/// What a site allocates. The caller holds no lock.
pub fn find_site_allocation(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    site: u32,
) -> ContextAllocation {
    let of = {
        let registry = agent.core.registry();
        match registry.site(site).map(|info| info.kind) {
            Some(RegisteredSiteKind::New(of) | RegisteredSiteKind::Array(of)) => {
                registry.name_text(of).to_string()
            }
            Some(_) => return ContextAllocation::Nothing,
            None => return ContextAllocation::Unknown,
        }
    };
    let size = find_site_size(agent, env, site).unwrap_or(0);
    ContextAllocation::Object { size, of }
}

/// Measures the size of the site's objects, once per site, and writes it to the log.
pub fn record_site_size(agent: CountingParts<'_>, env: JniEnvironment, site: u32) {
    let class = {
        let mut registry = agent.core.registry_mut();
        registry.start_measuring_class(site)
    };
    if let Some(class) = class
        && let Some(bytes) = measure_site(agent, env, site, &class)
    {
        let registry = agent.core.registry();
        // On failure the log is full, which is reported at the end.
        let _ = agent.core.log.append_site_size(&registry, site, bytes);
    }
}

/// The size of the site's objects in bytes, as in the log. `None`: the site's counters contain the bytes.
pub fn find_site_size(agent: CountingParts<'_>, env: JniEnvironment, site: u32) -> Option<u64> {
    let class = agent.core.registry().measured_class(site)?;
    measure_site(agent, env, site, &class)
}

/// `loader`: the loader of the class that refers to `class`.
fn measure_site(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    site: u32,
    (loader, class): &(ClassLoaderId, String),
) -> Option<u64> {
    if env.has_exception() {
        return None;
    }
    let of = |loader| measure_instance(agent, env, loader, class);
    // If the loader is gone, other loaders have the class.
    let others = || {
        let loaders = agent.core.registry().loaders_of_site(site);
        loaders.into_iter().find_map(of)
    };
    of(*loader).or_else(others)
}

fn measure_instance(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    loader: ClassLoaderId,
    class: &str,
) -> Option<u64> {
    let class = find_loaded(agent, env, loader, class)?;
    let size = measure_new_instance(agent, env, class);
    env.delete_local(class);
    size
}

/// The size in bytes of a new instance.
pub fn measure_new_instance(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    class: jclass,
) -> Option<u64> {
    let object = agent
        .counters
        .coverage
        .exclude_allocations(env, || env.allocate_object(class))?;
    let size = agent.core.jvmti.object_size(object);
    env.delete_local(object);
    size
}

/// A class that `loader` has loaded or found elsewhere. Runs no Java code.
fn find_loaded(
    agent: CountingParts<'_>,
    env: JniEnvironment,
    loader: ClassLoaderId,
    class: &str,
) -> Option<jobject> {
    let loader = agent.core.loaders.loader_object(env, loader)?;
    if loader.is_null() {
        return env.find_class(&c_string(class));
    }
    let base = env.find_class(c"java/lang/ClassLoader")?;
    let method = env.method_id(
        base,
        c"findLoadedClass0",
        c"(Ljava/lang/String;)Ljava/lang/Class;",
    );
    env.delete_local(base);
    let name = agent
        .counters
        .coverage
        .exclude_allocations(env, || env.new_string(&class.replace('/', ".")))?;
    let class = env.call_object(loader, method?, &[jvalue { l: name }]);
    env.delete_local(name);
    env.delete_local(loader);
    class
}
