package main

import (
	"fmt"
	"io"
	"strconv"

	dlqconsumer "github.com/reenvio/reenvio/dlq-consumer"
)

// redriveResult is what programs read of a redrive, or of what it would do.
type redriveResult struct {
	Run    string `json:"run"`
	DryRun bool   `json:"dry_run"`
	// Matched letters are ready, sent before or refused; ready ones were sent, failed or gone, but for a dry run.
	Matched    int64 `json:"matched"`
	Ready      int64 `json:"ready"`
	SentBefore int64 `json:"sent_before"`
	Sent       int64 `json:"sent"`
	Failed     int64 `json:"failed"`
	Gone       int64 `json:"gone"`
	Waiting    int64 `json:"waiting"`
	Unknowable int64 `json:"unknowable"`

	Reasons  []dlqconsumer.ReasonCount  `json:"reasons"`
	Webhooks []dlqconsumer.WebhookCount `json:"webhooks"`
	Refused  []dlqconsumer.Refused      `json:"refused"`
	Failures []dlqconsumer.Refused      `json:"failures,omitempty"`

	plan *dlqconsumer.Plan
}

func redriveOf(p *dlqconsumer.Plan, sent dlqconsumer.Sent, dry bool) redriveResult {
	r := redriveResult{
		Run: p.Run, DryRun: dry, Matched: p.Matched, Ready: p.Ready, SentBefore: p.SentBefore, Sent: sent.Sent, Gone: sent.Gone,
		Waiting: p.Waiting, Unknowable: p.Unknowable, Failures: sent.Failed, plan: p,
		Reasons: p.Reasons, Webhooks: p.Webhooks, Refused: p.Refused,
	}
	for _, f := range sent.Failed {
		r.Failed += f.Count
	}
	return r
}

func (c *cli) printRedrive(r redriveResult, out format) error {
	if out == formatJSON {
		return printJSON(c.stdout, r)
	}
	switch {
	case r.Matched == 0:
		fmt.Fprintln(c.stderr, "No dead letter matches.")
		return nil
	case r.DryRun:
		if err := printPlan(c.stdout, r.plan); err != nil {
			return err
		}
		fmt.Fprintln(c.stderr, "\nNothing was sent: this is what a redrive would do.")
		return nil
	}
	err := printFacts(c.stdout, [][2]string{
		{"Run", r.Run},
		{"Dead letters", count(r.Matched)},
		{"Sent", strconv.FormatInt(r.Sent, 10)},
		{"Of these waiting", countWaiting(r.Waiting)},
		{"Sent before", count(r.SentBefore)},
		{"Gone meanwhile", count(r.Gone)},
	})
	if err != nil {
		return err
	}
	return printRefused(c.stdout, append(r.Failures, r.Refused...))
}

// printPlan is what would be sent, and what not.
func printPlan(w io.Writer, p *dlqconsumer.Plan) error {
	err := printFacts(w, [][2]string{
		{"Dead letters", count(p.Matched)},
		{"To be sent", strconv.FormatInt(p.Ready, 10)},
		{"Of these waiting", countWaiting(p.Waiting)},
		{"Sent before", count(p.SentBefore)},
	})
	if err != nil {
		return err
	}
	if p.Unknowable > 0 {
		fmt.Fprintf(w, "%d of them died before what the events topic still holds: whether they were redriven since, nobody can tell.\n", p.Unknowable)
	}
	if p.Ready > 0 {
		var rows [][]string
		for _, r := range p.Reasons {
			rows = append(rows, []string{string(r.Reason), count(r.Count)})
		}
		fmt.Fprintln(w)
		if err := printTable(w, []string{"REASON", "TO BE SENT"}, rows); err != nil {
			return err
		}
		rows = nil
		for i, webhook := range p.Webhooks {
			if i == topWebhooks {
				rows = append(rows, []string{fmt.Sprintf("(and %d more)", len(p.Webhooks)-i), "", ""})
				break
			}
			note := ""
			if webhook.Waiting {
				note = "paused or held"
			}
			rows = append(rows, []string{webhook.Webhook, count(webhook.Count), note})
		}
		fmt.Fprintln(w)
		if err := printTable(w, []string{"WEBHOOK", "TO BE SENT", "STATE"}, rows); err != nil {
			return err
		}
	}
	return printRefused(w, p.Refused)
}

func printRefused(w io.Writer, refused []dlqconsumer.Refused) error {
	if len(refused) == 0 {
		return nil
	}
	var rows [][]string
	for _, r := range refused {
		rows = append(rows, []string{string(r.Refusal), count(r.Count), r.First, r.Refusal.Advice()})
	}
	fmt.Fprintln(w)
	return printTable(w, []string{"NOT SENT", "LETTERS", "FIRST", "WHY"}, rows)
}

// count is a number, or nothing for none.
func count(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func countWaiting(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d, for a webhook that is paused or held: they go out when it is resumed or released", n)
}
