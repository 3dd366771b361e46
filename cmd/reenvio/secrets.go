package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/secrets"
)

func newSecrets(c *cli) *cobra.Command {
	return group("secrets", "Make the keyset that encrypts endpoints", newKeygen(c))
}

func newKeygen(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keygen -f FILE",
		Short: "Write a new keyset to a file",
		Long: `Write a new keyset to a file that only its owner can read. An existing file is never overwritten.

The sensitive values of endpoints (signing secrets, URLs, header values) are encrypted with it before they are written to Kafka. Dispatchers
and all who write endpoints need the same keyset. Keep a copy: without it, every endpoint must be entered again.`,
		Example: `  reenvio secrets keygen -f keyset.json
  REENVIO_SECRETS__KEYSET_FILE=keyset.json reenvio webhooks list`,
		Args: noArgs,
	}
	file := cmd.Flags().StringP("file", "f", "", "the file to write (required)")
	cmd.RunE = func(*cobra.Command, []string) error {
		if *file == "" {
			return usagef("say where to write the keyset: -f FILE")
		}
		if err := secrets.Generate(*file); err != nil {
			return err
		}
		fmt.Fprintf(c.stderr, "Wrote a new keyset to %s. Set secrets.keyset_file to it for dispatchers and for all who write endpoints, and keep a copy in a safe place.\n", *file)
		return nil
	}
	return cmd
}
