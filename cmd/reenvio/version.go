package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is set by the linker for released builds: -ldflags "-X main.release=1.2.3".
var release string

// version names this build in logs, requests and dead letters.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" { // go install ...@v1.2.3, or a commit
		return v
	}
	return "devel"
}

func newVersion(c *cli) *cobra.Command {
	cmd := &cobra.Command{Use: "version", Short: "Print the version of this build", Example: "  reenvio version", Args: noArgs}
	out := outputFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if *out == formatJSON {
			return printJSON(c.stdout, map[string]string{"version": version(), "go": runtime.Version()})
		}
		_, err := fmt.Fprintf(c.stdout, "reenvio %s (%s, %s/%s)\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	}
	return cmd
}
