// Checks that dashboards are what Grafana's own description of them allows: strictly, so unknown fields are errors too.
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// fault is what is wrong with a file; the module also returns errors without text, which say nothing.
func fault(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	var found dashboard.Dashboard
	if err := found.UnmarshalJSONStrict(content); err != nil && err.Error() != "" {
		return err.Error()
	}
	if err := found.Validate(); err != nil {
		return err.Error()
	}
	return ""
}

func main() {
	plugins.RegisterDefaultPlugins()
	for _, path := range os.Args[1:] {
		if said := fault(path); said != "" {
			fmt.Fprintf(os.Stderr, "%s: %s\n", path, said)
			os.Exit(1)
		}
	}
}
