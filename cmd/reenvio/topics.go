package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/topology"
)

func newTopics(c *cli) *cobra.Command {
	return group("topics", "Compare the topics in Kafka with what they should be, and mend them", newTopicsPlan(c), newTopicsApply(c))
}

func newTopicsPlan(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Print the difference between the topics that are there and what should be",
		Long: "Print the difference between the topics that are there and what should be. Exit status 0: nothing to do; 1: changes.\n" +
			"With -o json, a change that can't be made here has a hint: what to do instead.",
		Example: `  reenvio topics plan
  reenvio topics plan -o json --topics.partitions=24`,
		Args: noArgs,
	}
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := c.open(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		changes, err := c.plan(cmd.Context(), s, *out)
		if err == nil && len(changes) > 0 {
			return errNotDone
		}
		return err
	}
	return cmd
}

func newTopicsApply(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "apply",
		Short: "Create missing topics and alter the configuration of the others",
		Long: `Create missing topics and alter the configuration of the others, after printing the plan and asking.

No topic is ever deleted, and the number of partitions of an existing one never changes: webhooks would move to other partitions, away from
what waits for them. The way to more partitions is a new topics.prefix.`,
		Example: `  reenvio topics apply
  reenvio topics apply --yes      # in scripts`,
		Args: noArgs,
	}
	out := outputFlag(cmd)
	yes := yesFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := c.open(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		changes, err := c.plan(cmd.Context(), s, *out)
		if err != nil || len(changes) == 0 {
			return err
		}
		if hints, _ := hintsOf(changes); len(hints) > 0 {
			return errors.New("nothing was changed, because of what can't be mended here")
		}
		if err := c.confirm(cmd.Context(), *yes, fmt.Sprintf("Make these %d changes?", len(changes))); err != nil {
			return err
		}
		return changes.Apply(cmd.Context(), s.admin, func(change topology.Change) {
			fmt.Fprintf(c.stderr, "done: %s %s\n", change.Change, change.Topic)
		})
	}
	return cmd
}

// plannedChange is what programs read of a change.
type plannedChange struct {
	topology.Change
	Hint string `json:"hint,omitempty"` // of what can't be mended here: the way out
}

// plan prints what differs, and what can't be mended.
func (c *cli) plan(ctx context.Context, s *session, out format) (topology.Changes, error) {
	changes, err := topology.Plan(ctx, s.admin, s.topo)
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		if change.Deletes() {
			fmt.Fprintf(c.stderr, "%s: from %s to %s is shorter: applying it deletes what is beyond, events that wait included\n", change.Topic, change.From, change.To)
		}
	}
	if out == formatJSON {
		planned := []plannedChange{} // no change is an empty list
		for _, change := range changes {
			planned = append(planned, plannedChange{change, change.Hint()})
		}
		return changes, printJSON(c.stdout, planned)
	}
	if len(changes) == 0 {
		_, err := fmt.Fprintf(c.stdout, "Nothing to do: the topics with the prefix %s are as they should be.\n", s.topo.Prefix())
		return changes, err
	}
	var rows [][]string
	for _, change := range changes {
		rows = append(rows, []string{change.Topic, change.Change, change.From, change.To})
	}
	if err := printTable(c.stdout, []string{"TOPIC", "CHANGE", "FROM", "TO"}, rows); err != nil {
		return nil, err
	}
	hints, topics := hintsOf(changes)
	for _, hint := range hints {
		fmt.Fprintf(c.stderr, "%s can't be mended here: %s\n", strings.Join(topics[hint], ", "), hint)
	}
	return changes, nil
}

// hintsOf are the ways out of what can't be applied, in order, and the topics that each is for.
func hintsOf(changes topology.Changes) (hints []string, topics map[string][]string) {
	topics = map[string][]string{}
	for _, change := range changes {
		if change.Appliable() {
			continue
		}
		hint := change.Hint()
		if topics[hint] == nil {
			hints = append(hints, hint)
		}
		topics[hint] = append(topics[hint], change.Topic)
	}
	return hints, topics
}

func yesFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().BoolP("yes", "y", false, "go ahead without asking")
}
