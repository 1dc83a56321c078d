// What `lucce export --format otlp` writes, read by the code with which OpenTelemetry's collector receives profiles.
// Prints JSON: profiles with their sums, and of each context its stack.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

type profile struct {
	Name    string `json:"name"`
	Unit    string `json:"unit"`
	Samples int    `json:"samples"`
	Sum     int64  `json:"sum"`
}

type told struct {
	Resource map[string]any      `json:"resource"`
	Profiles []profile           `json:"profiles"`
	Stacks   map[string][]string `json:"stacks"`
	Threads  map[string]int64    `json:"threads"`
	Types    map[string]int64    `json:"types"`
	Contents int                 `json:"contents"`
}

func main() {
	bytes, err := os.ReadFile(os.Args[1])
	check(err)
	profiles, err := (&pprofile.ProtoUnmarshaler{}).UnmarshalProfiles(bytes)
	check(err)
	all := told{Stacks: map[string][]string{}, Threads: map[string]int64{}, Types: map[string]int64{}}
	contents := map[string]bool{}
	dictionary := profiles.Dictionary()
	resources := profiles.ResourceProfiles()
	for r := 0; r < resources.Len(); r++ {
		all.Resource = resources.At(r).Resource().Attributes().AsRaw()
		scopes := resources.At(r).ScopeProfiles()
		for s := 0; s < scopes.Len(); s++ {
			own := scopes.At(s).Profiles()
			for p := 0; p < own.Len(); p++ {
				all.add(dictionary, own.At(p), contents)
			}
		}
	}
	all.Contents = len(contents)
	check(json.NewEncoder(os.Stdout).Encode(all))
}

func (t *told) add(dictionary pprofile.ProfilesDictionary, of pprofile.Profile, contents map[string]bool) {
	text := dictionary.StringTable().At
	name := text(int(of.SampleType().TypeStrindex()))
	unit := text(int(of.SampleType().UnitStrindex()))
	sum := int64(0)
	for i := 0; i < of.Samples().Len(); i++ {
		sample := of.Samples().At(i)
		value := sample.Values().At(0)
		sum += value
		attributes := attributes(dictionary, sample.AttributeIndices())
		if context := attributes["lucce.context"]; context != "" {
			t.Stacks[context] = stack(dictionary, int(sample.StackIndex()))
		}
		if content := attributes["lucce.content"]; content != "" {
			contents[content] = true
		}
		if name == "alloc_space" {
			t.Threads[attributes["thread.name"]] += value
			t.Types[attributes["lucce.type"]] += value
		}
	}
	t.Profiles = append(t.Profiles, profile{name, unit, of.Samples().Len(), sum})
}

func attributes(dictionary pprofile.ProfilesDictionary, of pcommon.Int32Slice) map[string]string {
	all := map[string]string{}
	for i := 0; i < of.Len(); i++ {
		attribute := dictionary.AttributeTable().At(int(of.At(i)))
		all[dictionary.StringTable().At(int(attribute.KeyStrindex()))] = attribute.Value().AsString()
	}
	return all
}

// As the JVM prints it.
func stack(dictionary pprofile.ProfilesDictionary, of int) []string {
	var frames []string
	locations := dictionary.StackTable().At(of).LocationIndices()
	text := dictionary.StringTable().At
	for i := 0; i < locations.Len(); i++ {
		line := dictionary.LocationTable().At(int(locations.At(i))).Lines().At(0)
		function := dictionary.FunctionTable().At(int(line.FunctionIndex()))
		frames = append(frames, fmt.Sprintf("%s(%s:%d)", text(int(function.NameStrindex())), text(int(function.FilenameStrindex())), line.Line()))
	}
	return frames
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
