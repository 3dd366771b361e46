package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/record"
)

// newCompletion prints the scripts that lie in deploy/completions, for those who install nothing but the binary. They hold no command's
// name: the shell asks this program each time, so a script outlives the version that printed it.
func newCompletion(c *cli) *cobra.Command {
	return group("completion", "Print what makes a shell complete commands, flags and webhook ids",
		newCompletionOf(c, "bash", "Needs the package bash-completion.", `  source <(reenvio completion bash)                                          # this shell
  reenvio completion bash > ~/.local/share/bash-completion/completions/reenvio # every new one`,
			func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) }),
		newCompletionOf(c, "zsh", "Needs compinit, which `autoload -U compinit; compinit` in ~/.zshrc starts.", `  source <(reenvio completion zsh)                          # this shell
  reenvio completion zsh > "${fpath[1]}/_reenvio"           # every new one`,
			func(root *cobra.Command, w io.Writer) error { return root.GenZshCompletion(w) }),
		newCompletionOf(c, "fish", "", `  reenvio completion fish | source                          # this shell
  reenvio completion fish > ~/.config/fish/completions/reenvio.fish # every new one`,
			func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) }))
}

func newCompletionOf(c *cli, shell, needs, example string, write func(*cobra.Command, io.Writer) error) *cobra.Command {
	return &cobra.Command{
		Use:   shell,
		Short: "Print the completion script for " + shell,
		Long: strings.TrimSpace("Print the completion script for " + shell + ". It completes commands and flags with their help, and webhook ids from the broker that\n" +
			"is configured, if that answers within a second. " + needs),
		Example: example,
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return write(cmd.Root(), c.stdout) },
	}
}

// completeArguments tells the shell what may stand where: a webhook's id for an argument WEBHOOK and for --webhook, the values of a closed
// set, a file where a flag takes one, and else nothing rather than the files of the directory.
func completeArguments(c *cli, root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	webhooks := func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return c.webhookIDs(cmd, typed), cobra.ShellCompDirectiveNoFileComp
	}
	files := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveDefault
	}
	offer := func(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
		_ = cmd.RegisterFlagCompletionFunc(flag, values) // fails where the flag is absent, which is most of the time
	}
	offer(root, "config", files)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if words := strings.Fields(cmd.Use); len(words) > 1 && words[1] == "WEBHOOK" {
			cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
				if len(args) > 0 {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return webhooks(cmd, args, typed)
			}
		}
		offer(cmd, "webhook", webhooks)
		offer(cmd, "output", fixed(formatTable, formatJSON))
		offer(cmd, "ordering", fixed(record.OrderFirstAttempt, record.OrderStrict, record.OrderKey, record.OrderStrictKey, record.OrderNone))
		offer(cmd, "jitter", fixed(record.JitterAdditive, record.JitterFull))
		offer(cmd, "retry-on", fixed(record.RetryAny, record.RetryTransient))
		if cmd.HasParent() && cmd.Parent().Name() == "dlq" {
			offer(cmd, "reason", cobra.FixedCompletions(deathReasons(), cobra.ShellCompDirectiveNoFileComp))
		}
		for _, flag := range []string{"file", "data-dir"} {
			offer(cmd, flag, files)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

// fixed completes the values of a closed set.
func fixed[T ~string](values ...T) cobra.CompletionFunc {
	texts := make([]string, len(values))
	for i, value := range values {
		texts[i] = string(value)
	}
	return cobra.FixedCompletions(texts, cobra.ShellCompDirectiveNoFileComp)
}

func deathReasons() []string {
	var texts []string
	for _, reason := range record.DeathReasons() {
		texts = append(texts, string(reason))
	}
	return texts
}

// completionPatience is how long a person who pressed the tab key waits for a broker.
const completionPatience = time.Second

// webhookIDs are those that begin as typed, each with its description. No broker, a broker that is slow, a configuration that is wrong:
// then there is nothing to offer, and the command itself will say what is the matter.
func (c *cli) webhookIDs(cmd *cobra.Command, typed string) []string {
	quiet := *c
	quiet.stderr = io.Discard
	// cobra's script for fish sets a variable that looks like a setting of ours, and would be refused as one that doesn't exist.
	quiet.environ = slices.DeleteFunc(slices.Clone(c.environ), func(variable string) bool { return strings.HasPrefix(variable, "REENVIO_ACTIVE_HELP=") })
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	settings, origins, err := quiet.load(cmd)
	if err != nil || len(settings.Kafka.Brokers) == 0 {
		return nil
	}
	s, err := quiet.openWith(ctx, settings, origins)
	if err != nil {
		return nil
	}
	defer s.client.Close()
	endpoints, err := s.control(nil).ListEndpoints(ctx)
	if err != nil {
		return nil
	}
	var ids []string
	for _, e := range endpoints {
		if strings.HasPrefix(e.ID, typed) {
			ids = append(ids, cobra.CompletionWithDesc(e.ID, clean(e.Description)))
		}
	}
	return ids
}
