// OpenTelemetry's collector with its own receiver, as its builder would put it together, and an exporter that writes down what came.
// Arguments: the address to listen on, and the file, which gets a line of JSON for each profile.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/featuregate"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry"
)

const config = `yaml:
receivers: {otlp: {protocols: {http: {endpoint: %q}}}}
exporters: {lines: {}}
service:
  pipelines: {profiles: {receivers: [otlp], exporters: [lines]}}
`

// A profile, as it came.
type line struct {
	Id       string `json:"id"`
	Name     string `json:"name"`
	Unit     string `json:"unit"`
	Start    int64  `json:"start"`
	Duration uint64 `json:"duration"`
	Samples  int    `json:"samples"`
	Sum      int64  `json:"sum"`
}

type lines struct {
	component.StartFunc
	component.ShutdownFunc
	lock sync.Mutex
	file *os.File
}

func (l *lines) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (l *lines) ConsumeProfiles(_ context.Context, of pprofile.Profiles) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	text := of.Dictionary().StringTable().At
	for _, resource := range of.ResourceProfiles().All() {
		for _, scope := range resource.ScopeProfiles().All() {
			for _, own := range scope.Profiles().All() {
				kind := own.SampleType()
				told := line{
					Id: own.ProfileID().String(), Name: text(int(kind.TypeStrindex())), Unit: text(int(kind.UnitStrindex())),
					Start: int64(own.Time()), Duration: own.DurationNano(), Samples: own.Samples().Len(),
				}
				for _, sample := range own.Samples().All() {
					for _, value := range sample.Values().All() {
						told.Sum += value
					}
				}
				if err := json.NewEncoder(l.file).Encode(told); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func components() (otelcol.Factories, error) {
	create := func(context.Context, exporter.Settings, component.Config) (xexporter.Profiles, error) {
		file, err := os.OpenFile(os.Args[2], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		return &lines{file: file}, err
	}
	none := func() component.Config { return &struct{}{} }
	own := xexporter.NewFactory(component.MustNewType("lines"), none, xexporter.WithProfiles(create, component.StabilityLevelDevelopment))
	receivers, err := otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err != nil {
		return otelcol.Factories{}, err
	}
	exporters, err := otelcol.MakeFactoryMap[exporter.Factory](own)
	// Nothing of its own is told.
	silent := telemetry.NewFactory(none)
	return otelcol.Factories{Receivers: receivers, Exporters: exporters, Telemetry: silent}, err
}

func main() {
	check(featuregate.GlobalRegistry().Set("service.profilesSupport", true))
	collector, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.NewDefaultBuildInfo(),
		Factories: components,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs:              []string{fmt.Sprintf(config, os.Args[1])},
			ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
	check(err)
	check(collector.Run(context.Background()))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
