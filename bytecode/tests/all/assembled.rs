//! Classes that no compiler writes any more, byte by byte. Each has `public static int run(int)`.

/// A class under construction.
pub struct Assembler {
    pool: Vec<u8>,
    pub count: u16,
    major: u16,
    pub this: u16,
    object: u16,
    methods: Vec<u8>,
    methods_count: u16,
    class_attributes: Vec<u8>,
    class_attributes_count: u16,
}

/// A method's code and what hangs on it.
pub struct Body {
    pub code: Vec<u8>,
    pub stack: u16,
    /// start, end, handler, catch type
    pub handlers: Vec<[u16; 4]>,
    /// Contents of a `StackMapTable`.
    pub frames: Option<Vec<u8>>,
    pub locals: u16,
    /// Name and contents of other attributes.
    pub attributes: Vec<(&'static str, Vec<u8>)>,
}

impl Default for Body {
    fn default() -> Self {
        Self {
            code: vec![],
            stack: 8,
            handlers: vec![],
            frames: None,
            locals: 0,
            attributes: vec![],
        }
    }
}

pub fn u2(value: usize) -> [u8; 2] {
    u16::try_from(value).expect("16 bits").to_be_bytes()
}

impl Assembler {
    pub fn new(name: &str, major: u16) -> Self {
        let mut new = Self {
            pool: vec![],
            count: 1,
            major,
            this: 0,
            object: 0,
            methods: vec![],
            methods_count: 0,
            class_attributes: vec![],
            class_attributes_count: 0,
        };
        new.this = new.class(name);
        new.object = new.class("java/lang/Object");
        new
    }

    pub fn constant(&mut self, tag: u8, contents: &[u8]) -> u16 {
        self.pool.push(tag);
        self.pool.extend(contents);
        self.count += 1;
        self.count - 1
    }

    /// Integers, each another one, until there are so many constants.
    pub fn fill(&mut self, constants: u16) {
        for n in 0.. {
            if self.count >= constants {
                break;
            }
            self.constant(3, &(2_000_000_i32 + n).to_be_bytes());
        }
    }

    /// Code that calls a static method so many times.
    pub fn calling(&mut self, times: usize) -> Vec<u8> {
        let this = self.this;
        let [hi, lo] = self.method_ref(this, "none", "()V").to_be_bytes();
        let mut code: Vec<u8> = [184, hi, lo].repeat(times);
        code.push(177);
        code
    }

    pub fn utf8(&mut self, text: &str) -> u16 {
        self.constant(1, &[&u2(text.len())[..], text.as_bytes()].concat())
    }

    pub fn class(&mut self, name: &str) -> u16 {
        let name = self.utf8(name);
        self.constant(7, &name.to_be_bytes())
    }

    pub fn pair(&mut self, tag: u8, a: u16, b: u16) -> u16 {
        self.constant(tag, &[a.to_be_bytes(), b.to_be_bytes()].concat())
    }

    pub fn name_and_type(&mut self, name: &str, descriptor: &str) -> u16 {
        let (name, descriptor) = (self.utf8(name), self.utf8(descriptor));
        self.pair(12, name, descriptor)
    }

    pub fn method_ref(&mut self, owner: u16, name: &str, descriptor: &str) -> u16 {
        let both = self.name_and_type(name, descriptor);
        self.pair(10, owner, both)
    }

    pub fn method(&mut self, name: &str, descriptor: &str, body: &Body) {
        self.method_with(name, descriptor, body, &[]);
    }

    /// `attributes`: name and contents of others than its code.
    pub fn method_with(
        &mut self,
        name: &str,
        descriptor: &str,
        body: &Body,
        attributes: &[(&str, Vec<u8>)],
    ) {
        let (name, descriptor) = (self.utf8(name), self.utf8(descriptor));
        let code = self.utf8("Code");
        let frames_name = self.utf8("StackMapTable");
        let mut attribute = [body.stack, body.locals].map(u16::to_be_bytes).concat();
        attribute.extend((body.code.len() as u32).to_be_bytes());
        attribute.extend(&body.code);
        attribute.extend(u2(body.handlers.len()));
        attribute.extend(body.handlers.iter().flatten().flat_map(|v| v.to_be_bytes()));
        let frames = body.frames.as_ref().map(|frames| (frames_name, frames));
        let others = body.attributes.iter();
        let others: Vec<_> = others.map(|(name, body)| (self.utf8(name), body)).collect();
        let all: Vec<_> = frames.into_iter().chain(others).collect();
        attribute.extend(u2(all.len()));
        for (name, contents) in all {
            attribute.extend(name.to_be_bytes());
            attribute.extend((contents.len() as u32).to_be_bytes());
            attribute.extend(contents);
        }
        let count = 1 + attributes.len() as u16;
        for value in [0x0009, name, descriptor, count, code] {
            self.methods.extend(value.to_be_bytes());
        }
        self.methods.extend((attribute.len() as u32).to_be_bytes());
        self.methods.extend(attribute);
        for (name, contents) in attributes {
            let name = self.utf8(name);
            self.methods.extend(name.to_be_bytes());
            self.methods.extend((contents.len() as u32).to_be_bytes());
            self.methods.extend(contents);
        }
        self.methods_count += 1;
    }

    pub fn class_attribute(&mut self, name: &str, contents: &[u8]) {
        let name = self.utf8(name);
        self.class_attributes.extend(name.to_be_bytes());
        self.class_attributes
            .extend((contents.len() as u32).to_be_bytes());
        self.class_attributes.extend(contents);
        self.class_attributes_count += 1;
    }

    pub fn finish(self) -> Vec<u8> {
        let mut out = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0];
        out.extend(self.major.to_be_bytes());
        out.extend(self.count.to_be_bytes());
        out.extend(self.pool);
        for value in [0x0021, self.this, self.object, 0, 0, self.methods_count] {
            out.extend(value.to_be_bytes());
        }
        out.extend(self.methods);
        out.extend(self.class_attributes_count.to_be_bytes());
        out.extend(self.class_attributes);
        out
    }
}

/// All classes that can be run, with their names.
pub fn all() -> Vec<(String, Vec<u8>)> {
    let mut classes = vec![
        ("Condy".to_owned(), condy()),
        ("Objects".to_owned(), objects()),
    ];
    for major in [46, 48, 49, 50] {
        let name = format!("Subroutines{major}");
        classes.push((name.clone(), subroutines(&name, major)));
    }
    for major in [46, 49, 50, 51, 61] {
        let name = format!("Far{major}");
        classes.push((name.clone(), far(&name, major)));
    }
    classes
}

/// `jsr` and `ret`, a handler, and a call in the subroutine.
fn subroutines(name: &str, major: u16) -> Vec<u8> {
    let mut asm = Assembler::new(name, major);
    let this = asm.this;
    let [hi, lo] = asm.method_ref(this, "ten", "()I").to_be_bytes();
    asm.method(
        "ten",
        "()I",
        &Body {
            code: vec![16, 10, 172],
            ..Body::default()
        },
    );
    let code = vec![
        26, 60, // 0: iload_0, istore_1
        168, 0, 18, // 2: jsr 20
        132, 1, 1, // 5: iinc 1 1
        201, 0, 0, 0, 12, // 8: jsr_w 20
        27, 16, 12, 26, 108, // 13: iload_1, bipush 12, iload_0, idiv
        96, 172, // 18: iadd, ireturn
        77,  // 20: astore_2
        27, 184, hi, lo, 96, 60, // 21: iload_1, ten(), iadd, istore_1
        169, 2,  // 27: ret 2
        87, // 29: pop
        168, 255, 246, // 30: jsr 20
        27, 172, // 33: iload_1, ireturn
    ];
    let handlers = vec![[13, 20, 29, 0]];
    asm.method(
        "run",
        "(I)I",
        &Body {
            code,
            handlers,
            locals: 3,
            ..Body::default()
        },
    );
    asm.finish()
}

/// Branches in both directions over more than 32 KiB once there are hooks between.
fn far(name: &str, major: u16) -> Vec<u8> {
    const CALLS: usize = 4200;
    let mut asm = Assembler::new(name, major);
    let this = asm.this;
    let [hi, lo] = asm.method_ref(this, "next", "(I)I").to_be_bytes();
    let next = Body {
        code: vec![26, 4, 96, 172],
        locals: 1,
        ..Body::default()
    };
    asm.method("next", "(I)I", &next);
    let mut code = vec![
        3, 60, // 0: iconst_0, istore_1
        26, 153, 0, 0,  // 2: iload_0, ifeq end
        27, // 6: iload_1
    ];
    for _ in 0..CALLS {
        code.extend([184, hi, lo]);
    }
    code.push(60); // istore_1
    let body_end = code.len();
    code.extend([132, 0, 255, 26]); // iinc 0 -1, iload_0
    let back = i16::try_from(2 - (code.len() as i32)).expect("short");
    code.push(157); // ifgt 2
    code.extend(back.to_be_bytes());
    code.extend([167, 0, 6]); // goto end
    code.extend([3, 60, 0]); // dead: iconst_0, istore_1, nop
    let end = code.len();
    code.extend([27, 172]); // iload_1, ireturn
    code[4..6].copy_from_slice(&u2(end - 3));
    // append int at 2; same at the dead code; same at the end
    let dead = end - 3;
    let mut frames = vec![0, 3, 252, 0, 2, 1, 251];
    frames.extend(u2(dead - 2 - 1));
    frames.push(2);
    assert!(body_end < dead);
    let frames = (major >= 50).then_some(frames);
    asm.method(
        "run",
        "(I)I",
        &Body {
            code,
            locals: 2,
            frames,
            ..Body::default()
        },
    );
    asm.finish()
}

/// `ldc` of dynamic constants: `ConstantBootstraps.nullConstant` and `enumConstant`-like types.
fn condy() -> Vec<u8> {
    let mut asm = Assembler::new("Condy", 55);
    let bootstraps = asm.class("java/lang/invoke/ConstantBootstraps");
    let descriptor = "(Ljava/lang/invoke/MethodHandles$Lookup;Ljava/lang/String;Ljava/lang/Class;)";
    let method = |asm: &mut Assembler, name: &str, returns: &str| {
        let method = asm.method_ref(bootstraps, name, &format!("{descriptor}{returns}"));
        let [hi, lo] = method.to_be_bytes();
        asm.constant(15, &[6, hi, lo])
    };
    let null = method(&mut asm, "nullConstant", "Ljava/lang/Object;");
    let primitive = method(&mut asm, "primitiveClass", "Ljava/lang/Class;");
    let text = asm.name_and_type("x", "Ljava/lang/String;");
    let class = asm.name_and_type("I", "Ljava/lang/Class;");
    let text = asm.pair(17, 0, text);
    let class = asm.pair(17, 1, class);
    let get_name = asm.class("java/lang/Class");
    let get_name = asm.method_ref(get_name, "getName", "()Ljava/lang/String;");
    let length = asm.class("java/lang/String");
    let length = asm.method_ref(length, "length", "()I");
    let bootstrap = [
        u2(2),
        null.to_be_bytes(),
        u2(0),
        primitive.to_be_bytes(),
        u2(0),
    ]
    .concat();
    asm.class_attribute("BootstrapMethods", &bootstrap);
    let mut code = vec![18, text as u8, 76, 43, 199, 0, 9, 26, 154, 0, 5, 4, 172];
    code.extend([19, 0, class as u8, 182]); // 13: ldc_w, getName()
    code.extend(get_name.to_be_bytes());
    code.push(182);
    code.extend(length.to_be_bytes());
    code.push(172); // 22
    // append String at 13
    let string = asm.class("java/lang/String");
    let [hi, lo] = string.to_be_bytes();
    let frames = Some(vec![0, 1, 252, 0, 13, 7, hi, lo]);
    asm.method(
        "run",
        "(I)I",
        &Body {
            code,
            locals: 2,
            frames,
            ..Body::default()
        },
    );
    asm.finish()
}

/// An uninitialised object in a local variable over a branch, then created; the range of the
/// handler ends with the constructor call.
fn objects() -> Vec<u8> {
    let mut asm = Assembler::new("Objects", 52);
    let builder = asm.class("java/lang/StringBuilder");
    let init = asm.method_ref(builder, "<init>", "(I)V");
    let capacity = asm.method_ref(builder, "capacity", "()I");
    let mut code = vec![187];
    code.extend(builder.to_be_bytes());
    code.extend([89, 76]); // 3: dup, astore_1
    code.extend([26, 154, 0, 8]); // 5: iload_0, ifne 14
    code.extend([16, 20, 167, 0, 4]); // 9: bipush 20, goto 15
    code.extend([26, 183]); // 14: iload_0, 15: invokespecial
    code.extend(init.to_be_bytes());
    code.extend([43, 182]); // 18: aload_1, invokevirtual
    code.extend(capacity.to_be_bytes());
    code.push(172); // 22: ireturn
    code.extend([87, 2, 172]); // 23: pop, iconst_m1, ireturn
    let uninitialized = [8, 0, 0];
    let mut frames = vec![0, 3];
    // Locals are an int and the object; on the stack, the object, at 15 an int, too.
    for (delta, stack) in [(14u8, 1), (0, 2)] {
        frames.extend([255, 0, delta, 0, 2, 1]);
        frames.extend(uninitialized);
        frames.extend([0, stack]);
        frames.extend(uninitialized);
        frames.extend([1].iter().take(usize::from(stack) - 1));
    }
    let throwable = asm.class("java/lang/Throwable").to_be_bytes();
    // The handler sees the object before and after its construction: it may not know it.
    frames.extend([255, 0, 7, 0, 1, 1, 0, 1, 7]);
    frames.extend(throwable);
    let handlers = vec![[5, 18, 23, 0]];
    asm.method(
        "run",
        "(I)I",
        &Body {
            code,
            handlers,
            locals: 2,
            frames: Some(frames),
            ..Body::default()
        },
    );
    asm.finish()
}
