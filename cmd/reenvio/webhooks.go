package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/record"
	"github.com/reenvio/reenvio/internal/secrets"
)

func newWebhooks(c *cli) *cobra.Command {
	return group("webhooks", "Create, look at, change, pause and resume webhooks",
		newWebhooksCreate(c), newWebhooksList(c), newWebhooksGet(c), newWebhooksUpdate(c), newWebhooksDelete(c), newWebhooksRotateSecret(c),
		newWebhooksPause(c), newWebhooksResume(c), newWebhooksTest(c), newWebhooksDiscardParked(c))
}

// webhookView is a webhook as people and programs see it: its sensitive values redacted.
type webhookView struct {
	Endpoint record.Endpoint `json:"endpoint"`
	State    record.State    `json:"state"`
	Holds    []record.Hold   `json:"holds,omitempty"`  // those by hand that concern more than this webhook
	Secret   string          `json:"secret,omitempty"` // only right after it was made
	// ParkedExpireAt is from when on its parked events die, the oldest first.
	ParkedExpireAt record.Time `json:"parked_expire_at,omitzero"`

	pausedBy *record.Command // the one that paused it, as far as a person did
}

// inForce is the view with the defaults where nothing is set: programs need not know them.
func (v webhookView) inForce() webhookView {
	v.Endpoint = withDefaults(v.Endpoint)
	return v
}

func withDefaults(e record.Endpoint) record.Endpoint {
	record.EndpointDefaults(&e)
	e.MaxInFlight = e.MaxInFlightOr()
	return e
}

func newWebhooksList(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List all webhooks and their state",
		Example: `  reenvio webhooks list
  reenvio webhooks list -o json | jq -r '.[] | select(.state.status == "paused") | .endpoint.id'`,
		Args: noArgs,
	}
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := c.openForWebhooks(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		views, problems, err := s.listWebhooks(cmd.Context())
		if err != nil {
			return err
		}
		for _, problem := range problems {
			fmt.Fprintf(c.stderr, "reenvio: %v\n", problem)
		}
		if *out == formatJSON {
			for i := range views {
				views[i] = views[i].inForce()
			}
			return printJSON(c.stdout, views)
		}
		var rows [][]string
		for _, v := range views {
			rows = append(rows, []string{v.Endpoint.ID, v.statusText(), strconv.Itoa(v.State.ConsecutiveFailures), strconv.FormatInt(parkedCount(v.State), 10), v.Endpoint.URLHost, v.Endpoint.Tenant})
		}
		if len(rows) == 0 {
			fmt.Fprintln(c.stderr, "There is no webhook yet: `reenvio webhooks create` makes one.")
			return nil
		}
		return printTable(c.stdout, []string{"WEBHOOK", "STATUS", "FAILURES IN A ROW", "PARKED", "HOST", "TENANT"}, rows)
	}
	return cmd
}

func (s *session) listWebhooks(ctx context.Context) (views []webhookView, problems []error, err error) {
	ctl := s.control(nil)
	endpoints, err := ctl.ListEndpoints(ctx)
	if err != nil {
		return nil, nil, err
	}
	states, err := ctl.ListStates(ctx)
	if err != nil {
		return nil, nil, err
	}
	holds, err := ctl.ListHolds(ctx)
	if err != nil {
		return nil, nil, err
	}
	keys, _ := secrets.Load(s.settings.Secrets) // only to show a little more: see redact
	views = []webhookView{}                     // an empty list is [], not null
	for _, e := range endpoints {
		if e.Problem != nil {
			problems = append(problems, e.Problem)
			continue
		}
		views = append(views, webhookView{
			Endpoint: redact(keys, e.Endpoint), State: stateOr(states[e.ID], e.ID), Holds: holdsOf(e.Endpoint, holds[s.topo.PartitionFor(e.ID)]),
		})
	}
	return views, problems, nil
}

func newWebhooksGet(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "get WEBHOOK",
		Short: "Show one webhook, its configuration and its state",
		Long: `Show one webhook, its configuration and its state.

Secrets, header values and the URL's path are hidden. --reveal shows them, and needs the keyset.`,
		Example: `  reenvio webhooks get crm-orders
  reenvio webhooks get crm-orders --reveal -o json`,
		Args: oneArg("a webhook id"),
	}
	reveal := cmd.Flags().Bool("reveal", false, "show the secrets, the header values and the whole URL")
	out := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := c.openForWebhooks(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		view, err := s.getWebhook(cmd.Context(), args[0], *reveal)
		if err != nil {
			return err
		}
		return c.printWebhook(view, *out)
	}
	return cmd
}

func (s *session) getWebhook(ctx context.Context, id string, reveal bool) (webhookView, error) {
	ctl := s.control(nil)
	endpoint, err := findWebhook(ctx, ctl, id)
	if err != nil {
		return webhookView{}, err
	}
	view := webhookView{}
	if view.State, _, err = ctl.GetState(ctx, id); err != nil {
		return webhookView{}, err
	}
	view.State = stateOr(view.State, id)
	view.ParkedExpireAt = s.parkedExpireAt(ctx, view.State)
	holds, err := ctl.Holds(ctx, s.topo.PartitionFor(id))
	if err != nil {
		return webhookView{}, err
	}
	view.Holds = holdsOf(endpoint, holds)
	if view.State.HasPause(record.PauseManual) {
		command, found, err := ctl.PausedBy(ctx, id)
		if err != nil {
			return webhookView{}, err
		}
		if found {
			view.pausedBy = &command
		}
	}
	keys, err := secrets.Load(s.settings.Secrets)
	switch {
	case !reveal:
		endpoint = redact(keys, endpoint)
	case err != nil:
		return webhookView{}, usageError{err}
	default:
		if endpoint, err = keys.OpenEndpoint(endpoint); err != nil {
			return webhookView{}, err
		}
	}
	view.Endpoint = endpoint
	return view, nil
}

// findWebhook adds to control's error what to do next.
func findWebhook(ctx context.Context, ctl *control.Control, id string) (record.Endpoint, error) {
	if err := record.ValidWebhookID(id); err != nil {
		return record.Endpoint{}, usageError{err}
	}
	endpoint, _, err := ctl.GetEndpoint(ctx, id)
	return endpoint, whereToLook(err)
}

func whereToLook(err error) error {
	if errors.Is(err, control.ErrNotFound) || errors.Is(err, control.ErrDeleted) {
		return fmt.Errorf("%w (`reenvio webhooks list` shows those there are)", err)
	}
	return err
}

// redact hides every sensitive value, sealed or clear. Of the URL the path is hidden, and without keys (nil) that open it all of it: the host is
// in a field of its own.
func redact(keys *secrets.Keyset, e record.Endpoint) record.Endpoint {
	if keys != nil {
		if opened, err := keys.OpenEndpoint(e); err == nil {
			e = opened
		}
	}
	e = e.Clone()
	e.URL = redactURL(e)
	for i := range e.Secrets {
		e.Secrets[i].Value = redacted
	}
	for name := range e.Headers {
		e.Headers[name] = redacted
	}
	if e.TLS != nil && e.TLS.Key != "" {
		e.TLS.Key = redacted
	}
	return e
}

const redacted = "(redacted)"

func redactURL(e record.Endpoint) string {
	u, err := url.Parse(e.URL)
	if err != nil || secrets.Sealed(e.URL) {
		return redacted
	}
	if strings.Trim(u.Path, "/") == "" && u.RawQuery == "" {
		return e.URL
	}
	return u.Scheme + "://" + u.Host + "/" + redacted
}

// stateOr is the state of a webhook for which there may be none on record: it is active.
func stateOr(s record.State, id string) record.State {
	s.Webhook = cmp.Or(s.Webhook, id)
	s.Status = cmp.Or(s.Status, record.Active)
	return s
}

func statusText(s record.State) string {
	var reasons []string
	for _, reason := range s.PauseReasons {
		reasons = append(reasons, string(reason))
	}
	if len(reasons) == 0 {
		return string(s.Status)
	}
	return fmt.Sprintf("%s (%s)", s.Status, strings.Join(reasons, ", "))
}

func parkedCount(s record.State) int64 {
	if s.Parked == nil {
		return 0
	}
	return s.Parked.Count
}
