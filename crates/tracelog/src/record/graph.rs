//! Records of changes to the graph, from `callgraph`.

use lucce_callgraph::{
    Anchor, AnchorId, Base, ContextId, GraphNode, MethodId, SiteId, Transition, TransitionEffect,
    Version,
};

use super::RecordBody;
use crate::record_codec::{MalformedRecord, Parsed, RecordDecoder, RecordEncoder};

impl RecordBody<'_> for Base {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.version.0);
        if let Some(bits) = self.anchor_bits {
            out.put_number(bits);
        }
    }

    fn decode_fields(input: &mut RecordDecoder<'_>) -> Parsed<Self> {
        Ok(Base::new(Version(input.read_small()?)))
    }
}

/// A base with a different division of bits.
pub(super) struct DividedBase;

impl DividedBase {
    pub(super) fn decode_fields(input: &mut RecordDecoder<'_>) -> Parsed<Base> {
        Ok(Base {
            version: Version(input.read_small()?),
            anchor_bits: Some(input.read_small()?),
        })
    }
}

impl RecordBody<'_> for GraphNode {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.version.0);
        out.put_number(self.method.0);
        out.put_number(self.capacity);
    }

    fn decode_fields(input: &mut RecordDecoder<'_>) -> Parsed<Self> {
        Ok(GraphNode {
            version: Version(input.read_small()?),
            method: MethodId(input.read_small()?),
            capacity: input.read_number()?,
        })
    }
}

impl RecordBody<'_> for Transition {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.version.0);
        out.put_number(self.site.0);
        out.put_number(self.caller.0);
        out.put_number(self.callee.0);
        match self.effect {
            TransitionEffect::Anchoring => out.put_byte(0),
            TransitionEffect::Additive { to, av } => {
                out.put_byte(1);
                out.put_number(to.0);
                out.put_number(av);
            }
        }
    }

    fn decode_fields(input: &mut RecordDecoder<'_>) -> Parsed<Self> {
        Ok(Transition {
            version: Version(input.read_small()?),
            site: SiteId(input.read_small()?),
            caller: MethodId(input.read_small()?),
            callee: MethodId(input.read_small()?),
            effect: match input.read_byte()? {
                0 => TransitionEffect::Anchoring,
                1 => TransitionEffect::Additive {
                    to: Version(input.read_small()?),
                    av: input.read_number()?,
                },
                _ => return Err(MalformedRecord("unknown effect of a transition")),
            },
        })
    }
}

impl RecordBody<'_> for Anchor {
    fn encode_fields(&self, out: &mut RecordEncoder<'_>) {
        out.put_number(self.base.0);
        out.put_number(self.id.0);
        out.put_number(self.head.0);
        out.put_byte(self.parent.is_some().into());
        if let Some((context, site, method)) = self.parent {
            out.put_fixed(context.0);
            out.put_number(site.0);
            out.put_number(method.0);
        }
    }

    fn decode_fields(input: &mut RecordDecoder<'_>) -> Parsed<Self> {
        Ok(Anchor {
            base: Version(input.read_small()?),
            id: AnchorId(input.read_small()?),
            head: MethodId(input.read_small()?),
            parent: match input.read_byte()? {
                0 => None,
                _ => Some((
                    ContextId(input.read_fixed()?),
                    SiteId(input.read_small()?),
                    MethodId(input.read_small()?),
                )),
            },
        })
    }
}
