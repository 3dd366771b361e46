package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reenvio/reenvio/internal/config"
)

const rootHelp = `Reenvio delivers events to webhooks over HTTP, through Kafka, and loses none.

Try it, with nothing but this binary:

  reenvio dev                 # an embedded broker, a dispatcher and a sample receiver in one process

Every setting has a key, such as kafka.brokers. It is set in a YAML file (--config or REENVIO_CONFIG), in the environment
(REENVIO_KAFKA__BROKERS) or as a flag (--kafka.brokers); the later wins. ` + "`reenvio config`" + ` prints what is in force and where it was set.`

// newRoot builds the command tree. It is built anew for each run, so that tests share nothing.
func newRoot(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:           "reenvio",
		Short:         "Deliver events to webhooks, and lose none",
		Long:          rootHelp,
		SilenceErrors: true, // run prints them
		SilenceUsage:  true,
		Args:          noArgs,
		RunE:          help,
	}
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	root.PersistentFlags().StringVar(&c.configFile, "config", "", "YAML file with settings (default: the value of "+config.FileVariable+")")
	s := defaultSettings()
	config.RegisterFlags(root.PersistentFlags(), &s)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newDev(c), newDispatcher(c), newSend(c), newLogs(c), newEvents(c), newWebhooks(c), newHold(c), newRelease(c), newSkip(c), newStatus(c), newRetryTiers(c), newDLQ(c), newBench(c), newTopics(c), newSecrets(c), newConfig(c), newCompletion(c), newVersion(c),
	)
	root.SetHelpCommand(newHelp())
	completeArguments(c, root)
	return root
}

// flagError adds to the error about an unknown flag the setting that may have been meant, and says in our words what no number is.
func flagError(_ *cobra.Command, err error) error {
	if unknown, is := errors.AsType[*pflag.NotExistError](err); is && strings.ContainsAny(unknown.GetSpecifiedName(), "._") {
		s := defaultSettings()
		if near := config.Nearest(&s, unknown.GetSpecifiedName()); near != "" {
			return fmt.Errorf("%w; the nearest known key is \"--%s\"", err, near)
		}
	}
	if invalid, is := errors.AsType[*pflag.InvalidValueError](err); is {
		if want, known := map[string]string{"int": "a whole number", "float64": "a number", "bool": "true or false"}[invalid.GetFlag().Value.Type()]; known {
			return fmt.Errorf("--%s is %q: it must be %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
	}
	return err
}

// noArgs refuses arguments. For a command that only groups others, an argument is a misspelt command.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return usagef("%s takes no argument, got %q%s", cmd.CommandPath(), args[0], equalsSign(cmd, args[0]))
	}
	hint := ""
	cmd.SuggestionsMinimumDistance = 2 // two edits
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + near[0] + "?"
	}
	return usagef("%s has no command %q%s", cmd.CommandPath(), args[0], hint)
}

// equalsSign is the hint for an argument that was meant as the value of a flag before it, which may stand without one: --wait 10s.
func equalsSign(cmd *cobra.Command, arg string) (hint string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.NoOptDefVal != "" && f.Value.Type() == "duration" && f.Value.Set(arg) == nil {
			hint = fmt.Sprintf("; its value is given with an equals sign: --%s=%s", f.Name, arg)
		}
	})
	return hint
}

// oneArg wants exactly one argument, called what.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return usagef("%s needs %s as its argument", cmd.CommandPath(), what)
		case 1:
			return nil
		}
		return usagef("%s takes one argument, %s; got %d", cmd.CommandPath(), what, len(args))
	}
}

func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// newHelp is cobra's, but that a command which does not exist is a mistake.
func newHelp() *cobra.Command {
	find := func(cmd *cobra.Command, args []string) (*cobra.Command, []string, error) {
		return cmd.Root().Find(args)
	}
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show the help of a command",
		Example: "  reenvio help webhooks create",
		Args: func(cmd *cobra.Command, args []string) error {
			of, rest, err := find(cmd, args)
			if err != nil || !of.HasSubCommands() {
				return err
			}
			return noArgs(of, rest)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, _, err := find(cmd, args)
			if err != nil {
				return err
			}
			return of.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if of, _, err := find(cmd, args); err == nil {
				for _, sub := range of.Commands() {
					if sub.IsAvailableCommand() && strings.HasPrefix(sub.Name(), typed) {
						names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// group is a command that only holds others.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: noArgs, RunE: help}
	cmd.AddCommand(commands...)
	return cmd
}
