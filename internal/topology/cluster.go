package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// found is a topic as it is on the cluster.
type found struct {
	partitions  int32
	replication int
	config      map[string]string // effective values, whether set on the topic or inherited
}

// look reads all that there should be, drained topics included (as long as one is read it must be as good as a configured one), and what there is of
// it. A topic that is missing, or that this user may not see, is missing in the answer.
func look(ctx context.Context, adm *kadm.Client, t *Topology) ([]Spec, map[string]found, error) {
	details, err := list(ctx, adm)
	if err != nil {
		return nil, nil, err
	}
	specs := t.Specs()
	for _, topic := range t.drained(details) {
		tier, _ := t.TierOf(topic)
		specs = append(specs, t.retrySpec(tier))
	}
	topics := make(map[string]found, len(specs))
	var names []string
	for _, spec := range specs {
		if d, ok := details[spec.Topic]; ok && d.Err == nil {
			topics[spec.Topic] = found{int32(len(d.Partitions)), d.Partitions.NumReplicas(), map[string]string{}}
			names = append(names, spec.Topic)
		}
	}
	configs, err := adm.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the configuration of the topics: %w%s", err, authHint(err))
	}
	for _, name := range names {
		rc, err := configs.On(name, nil)
		if err := errors.Join(err, rc.Err); err != nil {
			return nil, nil, fmt.Errorf("reading the configuration of topic %s: %w%s", name, err, authHint(err))
		}
		for _, c := range rc.Configs {
			topics[name].config[c.Key] = c.MaybeValue()
		}
	}
	return specs, topics, nil
}

// list asks the cluster for all topics. The context makes kadm ask for this user's rights too, which is not needed here, but the only way around its
// cache: a plan right after an apply would otherwise be that of some seconds ago.
func list(ctx context.Context, adm *kadm.Client) (kadm.TopicDetails, error) {
	details, err := adm.ListTopics(kadm.WithAuthorizedOps(ctx))
	if err != nil {
		return nil, fmt.Errorf("listing topics: %w%s", err, authHint(err))
	}
	return details, nil
}

// Drained are the retry topics of this prefix that exist but are no longer configured. What lies in them was promised a delivery, so the
// dispatchers go on reading them.
func Drained(ctx context.Context, adm *kadm.Client, t *Topology) ([]string, error) {
	details, err := list(ctx, adm)
	if err != nil {
		return nil, err
	}
	return t.drained(details), nil
}

func (t *Topology) drained(details kadm.TopicDetails) []string {
	var names []string
	for _, name := range details.Names() {
		if tier, ok := t.TierOf(name); ok && !slices.Contains(t.tiers, tier) {
			names = append(names, name)
		}
	}
	return names
}

func authHint(err error) string {
	var auth *kadm.AuthError
	if errors.As(err, &auth) || errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed) {
		return " (`reenvio acls` prints the rights that are needed)"
	}
	return ""
}
