package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/config"
)

func newConfig(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the settings in force, and where each was set",
		Long: `Print the settings in force, secrets redacted, and where each was set.

The configuration is checked as every command checks it: exit status 2 means that none would start with it.`,
		Example: `  reenvio config
  reenvio config --config reenvio.yaml -o json
  REENVIO_KAFKA__BROKERS=kafka-1:9092 reenvio config`,
		Args: noArgs,
	}
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, origins, err := c.load(cmd)
		if err != nil {
			return err
		}
		if *out == formatJSON {
			return printJSON(c.stdout, config.Tree(&s))
		}
		var rows [][]string
		for _, field := range config.Fields(&s) {
			origin := origins[field.Key]
			if origin == "" {
				origin = "default"
			}
			rows = append(rows, []string{field.Key, field.Text(), origin})
		}
		return printTable(c.stdout, []string{"KEY", "VALUE", "SET BY"}, rows)
	}
	cmd.AddCommand(newReference(c))
	return cmd
}

// newReference prints the reference page. It is hidden: the page in docs/ is for people, and `make verify` compares the two.
func newReference(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:    "reference",
		Short:  "Print docs/configuration.md",
		Hidden: true,
		Args:   noArgs,
		RunE: func(*cobra.Command, []string) error {
			s := defaultSettings()
			table, err := config.Reference(&s)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(c.stdout, referenceHead+table)
			return err
		},
	}
}

const referenceHead = `<!-- Made by "reenvio config reference" from the doc tags in the code. Don't edit: run "make generate". -->
# Configuration

Each setting has a key. Its value comes from the first of these that sets it:

1. a flag of the same name: ` + "`--kafka.brokers=kafka-1:9092`" + `
2. the environment, ` + "`REENVIO_`" + ` and the key in capitals with ` + "`__`" + ` for each dot: ` + "`REENVIO_KAFKA__BROKERS=kafka-1:9092`" + `
3. the YAML file that ` + "`--config`" + ` or ` + "`REENVIO_CONFIG`" + ` names, one level of nesting for each dot
4. the default

A key that doesn't exist is an error in all three, and so is every other variable whose name starts with ` + "`REENVIO_`" + ` except
` + "`REENVIO_CONFIG`" + ` and ` + "`REENVIO_TEST_*`" + `. Lists are YAML lists, or text with commas. Durations are written as in Go: ` + "`100ms`, `30s`, `1h30m`" + `.
` + "`reenvio config`" + ` prints the settings in force, secrets redacted, and where each was set.

`
