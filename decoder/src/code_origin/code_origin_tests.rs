//! Origins of classes in the layouts in which programs are started.

use super::*;

/// Facts of a start, and classes with their location and expected origin.
struct Layout {
    name: &'static str,
    program: &'static str,
    main_class: &'static str,
    main_location: &'static str,
    is_merged: bool,
    directory: &'static str,
    classes: &'static [(&'static str, &'static str, CodeOrigin)],
}

use CodeOrigin::{Application, Jdk, Library};

/// The boot loader's classes have no location.
const BOOT: &str = "boot";
const NOWHERE: &str = "nowhere";

const LAYOUTS: [Layout; 21] = [
    Layout {
        name: "Spring Boot jar",
        program: "/srv/shop.jar",
        main_class: "com.acme.shop.Shop",
        main_location: "jar:nested:/srv/shop.jar/!BOOT-INF/classes/!/",
        is_merged: false,
        directory: "/srv",
        classes: &[
            (
                "com.acme.shop.Shop",
                "jar:nested:/srv/shop.jar/!BOOT-INF/classes/!/",
                Application,
            ),
            (
                "org.other.Plugin",
                "jar:file:/srv/shop.jar!/BOOT-INF/classes!/",
                Application,
            ),
            (
                "com.acme.shop.Orders$$SpringCGLIB$$0",
                "jar:nested:/srv/shop.jar/!BOOT-INF/classes/!/",
                Library,
            ),
            (
                "org.apache.catalina.Host",
                "jar:nested:/srv/shop.jar/!BOOT-INF/lib/tomcat.jar!/",
                Library,
            ),
            (
                "com.acme.core.Money",
                "jar:nested:/srv/shop.jar/!BOOT-INF/lib/acme-core.jar!/",
                Application,
            ),
            (
                "com.acme.shop.api.Order",
                "jar:nested:/srv/shop.jar/!BOOT-INF/lib/shop-api.jar!/",
                Application,
            ),
            (
                "org.springframework.boot.loader.launch.JarLauncher",
                "file:/srv/shop.jar",
                Library,
            ),
            ("java.sql.Driver", "jrt:/java.sql", Jdk),
        ],
    },
    Layout {
        name: "exploded classes",
        program: "com.acme.Main",
        main_class: "com.acme.Main",
        main_location: "file:/srv/app/target/classes/",
        is_merged: false,
        directory: "/srv/app",
        classes: &[
            (
                "com.acme.Main",
                "file:/srv/app/target/classes/",
                Application,
            ),
            (
                "org.lib.Thing",
                "file:/srv/.m2/repository/org/lib/1/lib-1.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "war in Tomcat",
        program: "org.apache.catalina.startup.Bootstrap",
        main_class: "org.apache.catalina.startup.Bootstrap",
        main_location: "file:/opt/tomcat/bin/bootstrap.jar",
        is_merged: false,
        directory: "/opt/tomcat",
        classes: &[
            (
                "org.apache.catalina.startup.Bootstrap",
                "file:/opt/tomcat/bin/bootstrap.jar",
                Library,
            ),
            (
                "org.apache.catalina.core.StandardHost",
                "file:/opt/tomcat/lib/catalina.jar",
                Library,
            ),
            (
                "shop.Cart",
                "file:/opt/tomcat/webapps/shop/WEB-INF/classes/",
                Application,
            ),
            (
                "org.lib.Thing",
                "file:/opt/tomcat/webapps/shop/WEB-INF/lib/lib.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "Quarkus",
        program: "target/quarkus-app/quarkus-run.jar",
        main_class: "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
        main_location: "",
        is_merged: false,
        directory: "/w",
        classes: &[
            (
                "org.acme.Greeting",
                "file:/w/target/quarkus-app/app/greeting-1.0.jar",
                Application,
            ),
            (
                "io.vertx.core.Vertx",
                "file:/w/target/quarkus-app/lib/main/vertx-core.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "shaded jar",
        program: "/srv/tool.jar",
        main_class: "com.acme.Tool",
        main_location: "file:/srv/tool.jar",
        is_merged: true,
        directory: "/",
        classes: &[
            ("com.acme.Tool", "file:/srv/tool.jar", Application),
            ("com.acme.io.Reader", "file:/srv/tool.jar", Application),
            (
                "com.google.common.base.Joiner",
                "file:/srv/tool.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "jar and its libraries",
        program: "com.acme.Main",
        main_class: "com.acme.Main",
        main_location: "file:/srv/app.jar",
        is_merged: false,
        directory: "/srv",
        classes: &[
            ("org.other.Part", "file:/srv/app.jar", Application),
            ("org.lib.Thing", "file:/srv/lib/lib.jar", Library),
            ("com.acme.core.Money", "file:/srv/lib/core.jar", Application),
        ],
    },
    Layout {
        name: "test run of Maven",
        program: "/w/core/target/surefire/surefirebooter.jar",
        main_class: "org.apache.maven.surefire.booter.ForkedBooter",
        main_location: "",
        is_merged: false,
        directory: "/w/core",
        classes: &[
            (
                "com.acme.core.MoneyTest",
                "file:/w/core/target/test-classes/",
                Application,
            ),
            (
                "com.acme.core.Money",
                "file:/w/core/target/classes/",
                Application,
            ),
            (
                "org.junit.Assert",
                "file:/srv/.m2/repository/junit/junit.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "source file",
        program: "jdk.compiler/com.sun.tools.javac.launcher.Main",
        main_class: "com.sun.tools.javac.launcher.Main",
        main_location: "jrt:/jdk.compiler",
        is_merged: false,
        directory: "/tmp",
        classes: &[
            ("Hello", "file:/tmp/Hello.java", Application),
            (
                "com.sun.tools.javac.launcher.Main",
                "jrt:/jdk.compiler",
                Jdk,
            ),
        ],
    },
    Layout {
        name: "image of jlink",
        program: "com.acme.app/com.acme.app.Main",
        main_class: "com.acme.app.Main",
        main_location: "jrt:/com.acme.app",
        is_merged: false,
        directory: "/",
        classes: &[
            ("com.acme.app.Main", "jrt:/com.acme.app", Application),
            ("com.acme.core.Money", "jrt:/com.acme.core", Application),
            ("org.lib.Thing", "jrt:/org.lib", Library),
            ("java.util.logging.Logger", "jrt:/java.logging", Jdk),
        ],
    },
    Layout {
        name: "program of Apache",
        program: "org.apache.foo.Main",
        main_class: "org.apache.foo.Main",
        main_location: "file:/srv/foo.jar",
        is_merged: false,
        directory: "/srv",
        classes: &[
            (
                "org.apache.foo.store.Table",
                "file:/srv/lib/foo-store.jar",
                Application,
            ),
            (
                "org.apache.commons.io.IOUtils",
                "file:/srv/lib/commons-io.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "Spring Boot jar, generated classes",
        program: "/srv/shop.jar",
        main_class: "io.lucce.shop.ShopApplication",
        main_location: "jar:nested:/srv/shop.jar/!BOOT-INF/classes/!/",
        is_merged: false,
        directory: "/srv",
        classes: &[
            (
                "io.lucce.shop.ShopApplication",
                "jar:nested:/srv/shop.jar/!BOOT-INF/classes/!/",
                Application,
            ),
            (
                "io.lucce.shop.ShopApplication$$SpringCGLIB$$0",
                "jar:nested:/srv/shop.jar/!BOOT-INF/classes/!/",
                Library,
            ),
            ("jdk.proxy2.$Proxy102", NOWHERE, Jdk),
            ("io.lucce.shop.$Proxy7", NOWHERE, Jdk),
            (
                "jdk.internal.reflect.GeneratedMethodAccessor3",
                NOWHERE,
                Jdk,
            ),
            ("org.xml.sax.helpers.AttributesImpl", BOOT, Jdk),
        ],
    },
    Layout {
        name: "Spring Boot, extracted, by its launcher",
        program: "org.springframework.boot.loader.launch.JarLauncher",
        main_class: "org.springframework.boot.loader.launch.JarLauncher",
        main_location: "",
        is_merged: false,
        directory: "/srv",
        classes: &[
            (
                "org.springframework.boot.loader.launch.JarLauncher",
                "file:/srv/shop/",
                Library,
            ),
            (
                "io.lucce.shop.ShopApplication",
                "file:/srv/shop/BOOT-INF/classes/",
                Application,
            ),
            (
                "io.lucce.core.Money",
                "file:/srv/shop/BOOT-INF/lib/core-1.jar",
                Application,
            ),
            (
                "org.apache.catalina.core.StandardHost",
                "file:/srv/shop/BOOT-INF/lib/tomcat-embed-core-10.1.48.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "Spring Boot, extracted, thin jar",
        program: "/srv/shop/shop.jar",
        main_class: "io.lucce.shop.ShopApplication",
        main_location: "file:/srv/shop/shop.jar",
        is_merged: false,
        directory: "/srv",
        classes: &[
            (
                "io.lucce.shop.PriceReader",
                "file:/srv/shop/shop.jar",
                Application,
            ),
            (
                "org.hibernate.Session",
                "file:/srv/shop/lib/hibernate-core-6.6.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "war in Tomcat, module in its lib",
        program: "org.apache.catalina.startup.Bootstrap",
        main_class: "org.apache.catalina.startup.Bootstrap",
        main_location: "file:/srv/tomcat/bin/bootstrap.jar",
        is_merged: false,
        directory: "/srv",
        classes: &[
            (
                "com.acme.web.Hello",
                "file:/srv/tomcat/webapps/shopweb/WEB-INF/classes/",
                Application,
            ),
            (
                "com.acme.core.Money",
                "file:/srv/tomcat/webapps/shopweb/WEB-INF/lib/acme-core.jar",
                Application,
            ),
            (
                "org.other.lib.Util",
                "file:/srv/tomcat/webapps/shopweb/WEB-INF/lib/other-lib.jar",
                Library,
            ),
            (
                "org.apache.juli.FileHandler",
                "file:/srv/tomcat/bin/tomcat-juli.jar",
                Library,
            ),
            (
                "org.jcp.xml.dsig.internal.dom.XMLDSigRI",
                "jrt:/java.xml.crypto",
                Jdk,
            ),
        ],
    },
    Layout {
        name: "Quarkus in its project",
        program: "target/quarkus-app/quarkus-run.jar",
        main_class: "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
        main_location: "",
        is_merged: false,
        directory: "/w",
        classes: &[
            (
                "org.acme.GreetingResource",
                "file:/w/target/quarkus-app/app/greeting-1.0.jar",
                Application,
            ),
            (
                "org.acme.Greeter_Bean",
                "file:/w/target/quarkus-app/quarkus/generated-bytecode.jar",
                Library,
            ),
            (
                "io.quarkus.runner.ApplicationImpl",
                "file:/w/target/quarkus-app/quarkus/generated-bytecode.jar",
                Library,
            ),
            (
                "org.acme.Fruit",
                "file:/w/target/quarkus-app/quarkus/transformed-bytecode.jar",
                Application,
            ),
            (
                "io.vertx.core.impl.ContextInternal",
                "file:/w/target/quarkus-app/quarkus/transformed-bytecode.jar",
                Library,
            ),
            (
                "io.netty.channel.Channel",
                "file:/w/target/quarkus-app/lib/main/io.netty.netty-transport-4.1.111.Final.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "Quarkus in a container",
        program: "quarkus-run.jar",
        main_class: "io.quarkus.bootstrap.runner.QuarkusEntryPoint",
        main_location: "",
        is_merged: false,
        directory: "/deployments",
        classes: &[
            (
                "org.acme.GreetingResource",
                "file:/deployments/app/greeting-1.0.jar",
                Application,
            ),
            (
                "org.acme.Greeter_Bean",
                "file:/deployments/quarkus/generated-bytecode.jar",
                Library,
            ),
            (
                "io.quarkus.runner.ApplicationImpl",
                "file:/deployments/quarkus/generated-bytecode.jar",
                Library,
            ),
            (
                "org.acme.Fruit",
                "file:/deployments/quarkus/transformed-bytecode.jar",
                Application,
            ),
            (
                "io.vertx.core.impl.ContextInternal",
                "file:/deployments/quarkus/transformed-bytecode.jar",
                Library,
            ),
            (
                "io.netty.channel.Channel",
                "file:/deployments/lib/main/io.netty.netty-transport-4.1.111.Final.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "shaded jar, relocated library",
        program: "/w/app/target/app-1-shaded.jar",
        main_class: "com.acme.app.Main",
        main_location: "file:/w/app/target/app-1-shaded.jar",
        is_merged: true,
        directory: "/srv",
        classes: &[
            (
                "com.acme.core.Money",
                "file:/w/app/target/app-1-shaded.jar",
                Application,
            ),
            (
                "com.acme.app.shaded.gson.Gson",
                "file:/w/app/target/app-1-shaded.jar",
                Library,
            ),
            (
                "org.apache.commons.lang3.StringUtils",
                "file:/w/app/target/app-1-shaded.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "test run of Gradle",
        program: "worker.org.gradle.process.internal.worker.GradleWorkerMain",
        main_class: "worker.org.gradle.process.internal.worker.GradleWorkerMain",
        main_location: "",
        is_merged: false,
        directory: "/w/gr/app",
        classes: &[
            (
                "com.acme.app.Main",
                "file:/w/gr/app/build/classes/java/main/",
                Application,
            ),
            (
                "com.acme.app.MainTest",
                "file:/w/gr/app/build/classes/java/test/",
                Application,
            ),
            (
                "com.acme.core.Money",
                "file:/w/gr/core/build/libs/core.jar",
                Application,
            ),
            (
                "org.gradle.api.internal.tasks.testing.worker.TestWorker",
                "file:/usr/share/gradle/lib/plugins/gradle-testing-base.jar",
                Library,
            ),
            (
                "com.google.gson.Gson",
                "file:/root/.gradle/caches/modules-2/files-2.1/com.google.code.gson/gson/2.13.1/gson-2.13.1.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "beside a Java agent",
        program: "/srv/dist/app.jar",
        main_class: "com.acme.app.Main",
        main_location: "file:/srv/dist/app.jar",
        is_merged: false,
        directory: "/srv",
        classes: &[
            ("com.acme.app.Main", "file:/srv/dist/app.jar", Application),
            (
                "io.opentelemetry.javaagent.bootstrap.AgentInitializer",
                BOOT,
                Library,
            ),
            ("com.acme.patch.Boot", BOOT, Application),
            (
                "io.opentelemetry.sdk.trace.SdkTracer",
                "file:/srv/opentelemetry-javaagent-2.20.1.jar",
                Library,
            ),
        ],
    },
    Layout {
        name: "Byte Buddy and CGLIB",
        program: "com.acme.gen.Gen",
        main_class: "com.acme.gen.Gen",
        main_location: "file:/srv/bb/classes/",
        is_merged: false,
        directory: "/srv",
        classes: &[
            (
                "com.acme.gen.Gen$Service",
                "file:/srv/bb/classes/",
                Application,
            ),
            (
                "com.acme.gen.Gen$Service$ByteBuddy$HSc8btbj",
                NOWHERE,
                Library,
            ),
            (
                "com.acme.gen.Gen$Service$$EnhancerByCGLIB$$1f3a",
                "file:/srv/bb/classes/",
                Library,
            ),
            ("com.sun.proxy.jdk.proxy1.$Proxy0", NOWHERE, Jdk),
        ],
    },
    Layout {
        name: "Scala",
        program: "shop.sc.Main",
        main_class: "shop.sc.Main",
        main_location: "file:/srv/scala/app-sc.jar",
        is_merged: false,
        directory: "/srv",
        classes: &[
            (
                "shop.sc.Main$delayedInit$body",
                "file:/srv/scala/app-sc.jar",
                Application,
            ),
            (
                "scala.collection.immutable.List",
                "file:/srv/jars/scala-library-2.13.16.jar",
                Library,
            ),
            (
                "kotlin.collections.CollectionsKt__CollectionsKt",
                "file:/srv/kt/kotlin-stdlib-2.3.0.jar",
                Library,
            ),
        ],
    },
];

#[test]
fn origins_are_right_in_every_layout() {
    for layout in &LAYOUTS {
        let launcher = find_launcher(layout.main_class);
        let mut launch = ProgramLaunch {
            program: layout.program,
            launcher,
            main_location: launcher.is_none().then_some(layout.main_location),
            is_merged: layout.is_merged,
            working_directory: layout.directory,
            ..ProgramLaunch::default()
        };
        let class = |&(name, location, _): &(&'static str, &'static str, CodeOrigin)| LoadedClass {
            name,
            is_boot: location == BOOT,
            location: Some(location).filter(|at| ![BOOT, NOWHERE].contains(at)),
        };
        match launcher {
            Some(_) => launch.add_packages(layout.classes.iter().map(class)),
            None => launch
                .own_packages
                .extend(project_package(layout.main_class)),
        }
        for row @ (name, _, expected) in layout.classes {
            assert_eq!(
                launch.classify_class(&class(row)),
                *expected,
                "{}: {name}",
                layout.name
            );
        }
    }
}

#[test]
fn patterns_of_the_user_decide() {
    let launch = ProgramLaunch {
        own_packages: BTreeSet::from(["com.acme"]),
        app: PatternList::parse("org.other.*+java.util.List").unwrap(),
        ..ProgramLaunch::default()
    };
    let origin = |name, is_boot| {
        launch.classify_class(&LoadedClass {
            name,
            is_boot,
            location: (!is_boot).then_some("file:/w/target/classes/"),
        })
    };
    assert_eq!(origin("org.other.Thing", false), Application);
    assert_eq!(origin("com.acme.Main", false), Library);
    assert_eq!(origin("java.util.List", true), Application);
    assert_eq!(origin("java.util.Map", true), Jdk);
}

#[test]
fn without_locations_all_but_the_jdk_is_own() {
    let launch = ProgramLaunch {
        has_no_locations: true,
        ..ProgramLaunch::default()
    };
    let origin = |name, is_boot| {
        launch.classify_class(&LoadedClass {
            name,
            is_boot,
            location: None,
        })
    };
    assert_eq!(origin("org.other.Thing", false), Application);
    assert_eq!(origin("java.sql.Driver", false), Jdk);
    assert_eq!(origin("java.util.Map", true), Jdk);
}

#[test]
fn a_main_class_names_the_own_package() {
    assert_eq!(project_package("com.acme.shop.Shop"), Some("com.acme"));
    assert_eq!(
        project_package("org.apache.foo.Main"),
        Some("org.apache.foo")
    );
    assert_eq!(project_package("com.acme.Main"), Some("com.acme"));
    // One part says too little, and a shared package nothing.
    assert_eq!(project_package("shop.Main"), None);
    assert_eq!(project_package("org.apache.Main"), None);
    assert_eq!(project_package("Main"), None);
}

#[test]
fn the_place_in_a_merged_archive_is_a_package() {
    for (is_merged, expected) in [(false, "all.jar"), (true, "com.acme.*")] {
        let launch = ProgramLaunch {
            main_location: Some("file:/srv/all.jar"),
            is_merged,
            ..ProgramLaunch::default()
        };
        let place = launch.describe_place(Some("file:/srv/all.jar"), Some("com.acme"));
        assert_eq!(place, expected);
    }
}

#[test]
fn places_are_short() {
    for (location, expected) in [
        (
            "jar:nested:/srv/shop.jar/!BOOT-INF/classes/!/",
            "shop.jar!BOOT-INF/classes",
        ),
        (
            "jar:file:/srv/shop.jar!/BOOT-INF/classes!/",
            "shop.jar!BOOT-INF/classes",
        ),
        ("file:/w/core/target/classes/", "core/target/classes"),
        ("file:/opt/deep/core/target/classes/", "core/target/classes"),
        ("file:/srv/app.jar", "app.jar"),
        ("file:/w/apps/app.jar", "apps/app.jar"),
        ("jrt:/com.acme.app", "com.acme.app"),
    ] {
        assert_eq!(short_location(location, "/w"), expected);
    }
    assert_eq!(short_location("file:/srv/app.jar", ""), "app.jar");
    assert_eq!(short_location("file:/w/", "/w"), "w");
}
