package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Apply creates the topics and alters the settings, in order, calls progress (may be nil) after each change, and returns when the created topics have
// leaders. It refuses the whole list when one change can't be applied: a half made set with two values of N could never be mended.
// What was done before an error stays; a new plan shows the rest.
func (cs Changes) Apply(ctx context.Context, adm *kadm.Client, progress func(Change)) error {
	var refused []error
	for _, c := range cs {
		if !c.Appliable() {
			refused = append(refused, errors.New(c.String()))
		}
	}
	if err := errors.Join(refused...); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	created := make(map[string]int32)
	for _, c := range cs {
		if err := c.apply(ctx, adm); err != nil {
			return err
		}
		if c.Change == ChangeCreate {
			created[c.Topic] = c.spec.Partitions
		}
		if progress != nil {
			progress(c)
		}
	}
	return awaitLeaders(ctx, adm, created)
}

func (c Change) apply(ctx context.Context, adm *kadm.Client) error {
	if c.Change == ChangeCreate {
		config := make(map[string]*string, len(c.spec.Config))
		for key, value := range c.spec.Config {
			config[key] = &value
		}
		resp, err := adm.CreateTopic(ctx, c.spec.Partitions, c.spec.Replication, config, c.Topic)
		switch {
		case errors.Is(err, kerr.TopicAlreadyExists):
			return fmt.Errorf("creating topic %s: it exists by now; run `reenvio topics plan` to see what is left to do", c.Topic)
		case err != nil:
			return fmt.Errorf("creating topic %s: %w%s%s", c.Topic, err, detail(resp.ErrMessage), authHint(err))
		}
		return nil
	}
	set := kadm.AlterConfig{Op: kadm.SetConfig, Name: c.key, Value: &c.value}
	resps, err := adm.AlterTopicConfigs(ctx, []kadm.AlterConfig{set}, c.Topic)
	if err == nil {
		var resp kadm.AlterConfigsResponse
		if resp, err = resps.On(c.Topic, nil); err == nil && resp.Err != nil {
			err = fmt.Errorf("%w%s", resp.Err, detail(resp.ErrMessage))
		}
	}
	if err != nil {
		return fmt.Errorf("setting %s of topic %s: %w%s", c.To, c.Topic, err, authHint(err))
	}
	return nil
}

func detail(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// On a cluster that is well, new topics are ready within a second.
const (
	leaderPoll = 100 * time.Millisecond
	leaderWait = 30 * time.Second
)

// awaitLeaders returns when every partition of the created topics has a leader: a topic is created by the controller, and the brokers hear of it a
// moment later. A process started in that moment would find the set wrong.
func awaitLeaders(ctx context.Context, adm *kadm.Client, created map[string]int32) error {
	if len(created) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaderWait)
	defer cancel()
	for {
		details, err := list(ctx, adm)
		if err != nil {
			return err
		}
		waiting := ""
		for topic, partitions := range created {
			if !led(details[topic], partitions) {
				waiting = topic
			}
		}
		if waiting == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the leaders of new topic %s: %w", waiting, ctx.Err())
		case <-time.After(leaderPoll):
		}
	}
}

func led(d kadm.TopicDetail, partitions int32) bool {
	return len(d.Partitions) == int(partitions) && !slices.ContainsFunc(d.Partitions.Sorted(), func(p kadm.PartitionDetail) bool {
		return p.Err != nil || p.Leader < 0
	})
}
