package main

import (
	"github.com/spf13/cobra"

	dlqconsumer "github.com/reenvio/reenvio/dlq-consumer"
	"github.com/reenvio/reenvio/internal/record"
)

// filters are the flags that pick dead letters, the same for each command about them.
type filters struct {
	webhooks, reasons, ids []string
	since, until           since
}

const filterHelp = `--webhook, --reason and --id can be given more than once: a letter has to fit any one of the same kind, and all kinds.`

func filterFlags(cmd *cobra.Command) *filters {
	f := &filters{}
	cmd.Flags().StringArrayVar(&f.webhooks, "webhook", nil, "only those of this webhook")
	cmd.Flags().StringArrayVar(&f.reasons, "reason", nil, "only those that died of this reason, such as attempts_exhausted")
	cmd.Flags().StringArrayVar(&f.ids, "id", nil, "only those of the event with this id")
	cmd.Flags().Var(&f.since, "since", "only those that died since then: how long ago (24h, 7d), or an RFC 3339 time")
	cmd.Flags().Var(&f.until, "until", "only those that died until then: how long ago, or an RFC 3339 time")
	return f
}

// filter is what the flags say; an error is the user's.
func (f *filters) filter() (dlqconsumer.Filter, error) {
	filter := dlqconsumer.Filter{Webhooks: f.webhooks, IDs: f.ids, Since: f.since.time, Until: f.until.time}
	for _, reason := range f.reasons {
		filter.Reasons = append(filter.Reasons, record.DeathReason(reason))
	}
	if err := filter.Validate(); err != nil {
		return filter, usageError{err}
	}
	return filter, nil
}
