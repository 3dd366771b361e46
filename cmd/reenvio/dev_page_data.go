package main

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
)

// pageData is what the template shows.
type pageData struct {
	Overview *overview.Overview
	Webhooks []pageWebhook
	More     int // webhooks that are not in the list
	Retries  []overview.Tier
	Attempts []record.Attempt
	Dead     []record.DeadLetter
	Received []received
	Since    time.Time
	Self     string
	Admin    string // host:port
	Try      []string
	Still    bool // don't look again by itself
	Refresh  int  // seconds
}

type pageWebhook struct {
	ID, Description, Host string
	Flow                  webhookFlow
	Parked                int64
	Paused                *overview.Paused
	Held                  bool
	Returning             bool
}

// pageWebhooks is how many webhooks the page has at most.
const pageWebhooks = 100

func (p *page) put(o *overview.Overview, endpoints []control.Stored) *pageData {
	flow := p.flow.shown()
	d := &pageData{
		Overview: o, Attempts: flow.attempts, Dead: flow.dead, Received: p.receiver.last(), Since: p.since, Self: p.self,
		Admin: fmt.Sprintf("127.0.0.1:%d", p.file.Ports.Admin), Refresh: int(pageRefresh.Seconds()),
		Try: []string{
			`send --webhook ` + demoOK + ` --data '{"hello":"world"}'`, "status", "webhooks get " + demoDown, "logs " + demoFlaky,
			"webhooks pause " + demoOK, "webhooks resume " + demoDown, "dlq list", "retry-tiers",
		},
	}
	for _, t := range o.RetryTiers {
		if t.Waiting > 0 {
			d.Retries = append(d.Retries, t)
		}
	}
	paused := map[string]*overview.Paused{}
	for i := range o.Paused {
		paused[o.Paused[i].Webhook] = &o.Paused[i]
	}
	returning := map[string]int64{}
	for _, r := range o.Returning {
		returning[r.Webhook] = r.Parked
	}
	for _, e := range endpoints {
		w := pageWebhook{ID: e.ID, Description: e.Description, Host: e.URLHost, Flow: flow.webhooks[e.ID], Paused: paused[e.ID], Held: heldBy(o.Holds, e.Endpoint)}
		w.Parked, w.Returning = returning[e.ID], returning[e.ID] > 0
		if w.Paused != nil {
			w.Parked = w.Paused.Parked
		}
		d.Webhooks = append(d.Webhooks, w)
	}
	// What a person must look at first, when not all are shown.
	slices.SortStableFunc(d.Webhooks, func(a, b pageWebhook) int { return cmp.Compare(b.rank(), a.rank()) })
	if more := len(d.Webhooks) - pageWebhooks; more > 0 {
		d.Webhooks, d.More = d.Webhooks[:pageWebhooks], more
	}
	slices.SortFunc(d.Webhooks, func(a, b pageWebhook) int { return strings.Compare(a.ID, b.ID) })
	return d
}

func (w pageWebhook) rank() int {
	switch {
	case w.Paused != nil || w.Held:
		return 2
	case w.Flow != webhookFlow{}:
		return 1
	}
	return 0
}

func heldBy(holds []overview.Hold, e record.Endpoint) bool {
	return slices.ContainsFunc(holds, func(h overview.Hold) bool {
		by := record.Hold{Scope: h.Scope, Value: h.Value}
		return h.Scope == record.HoldWebhook && h.Value == e.ID || by.Concerns(e.Tenant, e.URLHost)
	})
}

var pageFuncs = template.FuncMap{
	"clock": func(t time.Time) string { return t.Local().Format(time.TimeOnly) },
	"at": func(t record.Time) string {
		if t.IsZero() {
			return ""
		}
		if time.Since(t.Time).Abs() > 12*time.Hour { // another day, most likely
			return timeText(t)
		}
		return t.Local().Format(time.TimeOnly)
	},
	"reasons": reasonsText,
	"answer": func(p overview.Paused) string {
		return lastAnswer(record.State{LastStatus: p.LastStatus, LastError: p.LastError})
	},
	"result": answerText,
	"bound":  boundText,
	"ranges": overview.Ranges,
	// The next step as a command that works here, where the program may have another name.
	"here": func(self, step string) string {
		if rest, ok := strings.CutPrefix(step, "reenvio "); ok {
			return self + " " + rest
		}
		return strings.ReplaceAll(strings.ReplaceAll(step, "(reenvio ", "("+self+" "), ": reenvio ", ": "+self+" ")
	},
}
