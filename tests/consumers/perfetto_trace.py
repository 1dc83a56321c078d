"""What `lucce export --format perfetto` writes, read by Perfetto's own description of its traces.

Prints JSON: for each category the number of events, their values and how long they last on their tracks; threads; and of each
context its stack.
"""

import collections
import json
import sys

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

SEQUENCE = ["function_names", "frames", "callstacks", "source_paths", "event_names", "event_categories",
            "debug_annotation_names", "debug_annotation_string_values"]


def main(path):
    trace = perfetto.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    tables = {name: {} for name in SEQUENCE}
    tracks, open_bars = {}, collections.defaultdict(list)
    kinds = collections.defaultdict(lambda: {"events": 0, "sum": 0, "count": 0, "lasted": 0})
    threads, stacks, contents = collections.Counter(), {}, set()
    timed = []
    for number, packet in enumerate(trace.packet):
        known(packet)
        assert packet.trusted_packet_sequence_id == 1
        cleared = packet.sequence_flags & perfetto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        assert bool(cleared) == (number == 0)
        for name, table in tables.items():
            for entry in getattr(packet.interned_data, name):
                known(entry)
                assert entry.iid not in table, "each is told once"
                table[entry.iid] = entry
        if packet.HasField("track_descriptor"):
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            timed.append(told(packet, tables))
    # As trace processor does it: in the order of times, what is at one time as it stands in the file.
    for event in sorted(timed, key=lambda event: event["at"]):
        track = tracks[event["track"]]
        bars = open_bars[event["track"]]
        if event["type"] == perfetto.TrackEvent.TYPE_SLICE_END:
            begin = bars.pop()
            kinds[begin["kind"]]["lasted"] += event["at"] - begin["at"]
            continue
        if event["type"] == perfetto.TrackEvent.TYPE_SLICE_BEGIN:
            bars.append(event)
        kind = kinds[event["kind"]]
        kind["events"] += 1
        kind["count"] += event["annotations"].get("count", 1)
        kind["sum"] += event["annotations"].get("bytes", event["annotations"].get("ns", 0))
        threads[track.thread.thread_name] += 1
        stacks[event["annotations"]["context"]] = event["stack"]
        contents.add(event["annotations"].get("content"))
    assert not any(open_bars.values()), "what begins ends"
    process = tracks[1].process
    print(json.dumps({"kinds": kinds, "threads": threads, "stacks": stacks, "contents": len(contents - {None}),
                      "pid": process.pid, "command": " ".join(process.cmdline)}))


def told(packet, tables):
    event = packet.track_event
    known(event)
    names = tables["debug_annotation_names"]
    annotations = {}
    for annotation in event.debug_annotations:
        known(annotation)
        if annotation.HasField("uint_value"):
            value = annotation.uint_value
        else:
            value = tables["debug_annotation_string_values"][annotation.string_value_iid].str.decode()
        annotations[names[annotation.name_iid].name] = value
    return {
        "at": packet.timestamp,
        "type": event.type,
        "track": event.track_uuid,
        "kind": tables["event_categories"][event.category_iids[0]].name if event.category_iids else None,
        "name": tables["event_names"][event.name_iid].name if event.name_iid else None,
        "annotations": annotations,
        "stack": stack(event.callstack_iid, tables),
    }


def stack(iid, tables):
    """Innermost first, as the JVM prints it."""
    if iid == 0:
        return []
    frames = [tables["frames"][frame] for frame in tables["callstacks"][iid].frame_ids]
    shown = []
    for frame in reversed(frames):
        name = tables["function_names"][frame.function_name_id].str.decode()
        file = tables["source_paths"][frame.source_path_iid].str.decode() if frame.source_path_iid else ""
        shown.append(f"{name}({file}:{frame.line_number})")
    return shown


def known(message):
    assert not len(unknown_fields.UnknownFieldSet(message)), f"unknown fields in {message}"


main(sys.argv[1])
