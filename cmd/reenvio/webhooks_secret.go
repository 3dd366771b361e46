package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/record"
)

func newWebhooksRotateSecret(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate-secret WEBHOOK",
		Short: "Sign with a new secret, for a while with the old ones too",
		Long: `Sign the requests of a webhook with a new secret. Until --overlap has passed they carry the signatures of the old secrets too, so that the
receiver can change over in its own time; --overlap 0 ends the old ones at once.

The new secret is shown this once, unless it was given.`,
		Example: `  reenvio webhooks rotate-secret crm-orders
  reenvio webhooks rotate-secret crm-orders --overlap 7d --secret @secret.txt
  reenvio webhooks rotate-secret crm-orders --overlap 0     # the old one has leaked`,
		Args: oneArg("a webhook id"),
	}
	fields := &endpointFlags{flags: cmd.Flags()}
	cmd.Flags().StringVar(&fields.secret, "secret", "", "the new secret: whsec_..., @FILE, or - for standard input; without it, one is made and shown once")
	overlap := durationFlag(cmd.Flags(), "overlap", 24*time.Hour, "how long the old secrets go on signing; 0 ends them at once")
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *overlap < 0 {
			return usagef("--overlap is %s: it must be 0 or longer", *overlap)
		}
		secret, minted, err := fields.signingSecret(cmd.Context(), c)
		if err != nil {
			return err
		}
		now := time.Now()
		u, err := c.changeWebhook(cmd, args[0], func(e *record.Endpoint) error {
			if len(e.Secrets) > 0 && e.Secrets[0].Value == secret {
				return usagef("--secret is what %s signs with now already, and nothing was changed: give another one, or none to have one made", e.ID)
			}
			e.Secrets = rotate(e.Secrets, secret, now, *overlap)
			return nil
		})
		if err != nil {
			return err
		}
		if minted {
			u.view.Secret = secret
		}
		return c.printRotation(u.view, *out)
	}
	return cmd
}

// rotate puts a new secret in front. The old ones end when overlap has passed, or earlier where they were to; those that have ended are
// dropped. An old secret that is given again becomes the new one.
func rotate(old []record.Secret, secret string, now time.Time, overlap time.Duration) []record.Secret {
	all := []record.Secret{{Value: secret, CreatedAt: record.At(now)}}
	end := record.At(now.Add(overlap))
	for _, s := range old {
		if s.ExpiresAt.IsZero() || s.ExpiresAt.After(end.Time) {
			s.ExpiresAt = end
		}
		if s.Value != secret && s.ExpiresAt.After(now) {
			all = append(all, s)
		}
	}
	return all
}

func (c *cli) printRotation(v webhookView, out format) error {
	if out == formatJSON {
		return printJSON(c.stdout, v.inForce())
	}
	old := "The old ones have ended."
	if secrets := v.Endpoint.Secrets; len(secrets) > 1 {
		last := slices.MaxFunc(secrets[1:], func(a, b record.Secret) int { return a.ExpiresAt.Compare(b.ExpiresAt.Time) })
		old = "The old ones sign too, the last until " + timeText(last.ExpiresAt) + "."
	}
	if _, err := fmt.Fprintf(c.stdout, "%s signs with a new secret. %s\n", v.Endpoint.ID, old); err != nil || v.Secret == "" {
		return err
	}
	_, err := fmt.Fprintf(c.stdout, "\nSigning secret, shown this once: %s\n", v.Secret)
	return err
}
