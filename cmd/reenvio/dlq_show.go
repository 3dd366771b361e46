package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	dlqconsumer "github.com/reenvio/reenvio/dlq-consumer"
	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
)

// placePattern is how `dlq list` names where a letter lies, and with the topic how others do. An event whose id looks the same is found with --id.
var placePattern = regexp.MustCompile(`^(?:([^/]+)/)?(\d+)/(\d+)$`)

func newDLQShow(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show (EVENT-ID | [TOPIC/]PARTITION/OFFSET)",
		Short: "Show one dead letter, whole",
		Long: `Show one dead letter, whole: what happened to the event, its headers, and its value.

It is named by the event's id (the newest letter of it is shown) or by its place, as ` + "`reenvio dlq list`" + ` prints it, with the topic before it or without.`,
		Example: `  reenvio dlq show 3/17
  reenvio dlq show evt-4711
  reenvio dlq show --id evt-4711 --webhook crm-orders -o json`,
	}
	filters := filterFlags(cmd)
	out := outputFlag(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		switch {
		case len(filters.ids) > 0 && len(args) > 0:
			return usagef("%s takes an argument or --id, not both", cmd.CommandPath())
		case len(filters.ids) == 1:
			return nil
		case len(filters.ids) > 1:
			return usagef("%s shows one letter: it takes --id once", cmd.CommandPath())
		}
		return oneArg("an event id or PARTITION/OFFSET")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		filter, err := filters.filter()
		if err != nil {
			return err
		}
		var place []string
		tooMuch := usagef("%s names one letter: the other flags have nothing to choose from", strings.Join(args, ""))
		filtered := !filter.Empty()
		if len(args) > 0 {
			if place = placePattern.FindStringSubmatch(args[0]); len(place) > 0 && place[1] == "" && filtered {
				return tooMuch
			}
			filter.IDs = args
		}
		s, err := c.openForDeadLetters(cmd)
		if err != nil {
			return err
		}
		defer s.client.Close()
		if len(place) > 0 && place[1] != "" && place[1] != s.topo.DLQ() {
			place = nil // an id that looks like one: no other topic has letters
		}
		if len(place) > 0 && filtered {
			return tooMuch
		}
		letter, err := c.find(cmd, dlqconsumer.New(s.client, s.topo), filter, place)
		if err != nil {
			return err
		}
		if *out == formatJSON {
			return printJSON(c.stdout, letter)
		}
		return c.printLetter(letter)
	}
	return cmd
}

func (c *cli) find(cmd *cobra.Command, letters *dlqconsumer.Reader, f dlqconsumer.Filter, place []string) (record.DeadLetter, error) {
	if place != nil {
		partition, perr := strconv.ParseInt(place[2], 10, 32)
		offset, oerr := strconv.ParseInt(place[3], 10, 64)
		if err := errors.Join(perr, oerr); err != nil {
			return record.DeadLetter{}, usageError{err}
		}
		return letters.At(cmd.Context(), int32(partition), offset)
	}
	var found []record.DeadLetter
	err := letters.List(cmd.Context(), f, 2, func(l record.DeadLetter) error { found = append(found, l); return nil })
	if err != nil {
		return record.DeadLetter{}, err
	}
	if len(found) == 0 {
		return record.DeadLetter{}, fmt.Errorf("%w of the event %s: it may wait for a retry, be parked or delivered, or its letter is older than the topic keeps", dlqconsumer.ErrNotFound, f.IDs[0])
	}
	if len(found) > 1 {
		fmt.Fprintf(c.stderr, "This is the newest of several: `reenvio dlq list --id %s` lists them.\n", f.IDs[0])
	}
	return found[0], nil
}

func (c *cli) printLetter(l record.DeadLetter) error {
	status := ""
	if l.LastStatus != 0 {
		status = strconv.Itoa(l.LastStatus)
	}
	err := printFacts(c.stdout, [][2]string{
		{"Event", l.ID},
		{"Type", l.Type},
		{"Webhook", string(l.Key)},
		{"Reason", string(l.Reason)},
		{"Message", l.Message},
		{"Attempts", strconv.Itoa(l.Attempts)},
		{"Produced at", timeText(l.ProducedAt)},
		{"First attempt at", timeText(l.FirstAttemptAt)},
		{"Last attempt at", timeText(l.LastAttemptAt)},
		{"Died at", timeText(l.DiedAt)},
		{"Last status", status},
		{"Last error", l.LastError},
		{"Last response", l.Response},
		{"Endpoint", l.URLHost},
		{"Dispatcher", strings.TrimSpace(l.Dispatcher + " " + l.Version)},
		{"Event record", l.Source.String()},
		{"Dead letter", l.Position.String()},
	})
	if err != nil {
		return err
	}
	if len(l.Headers) > 0 {
		fmt.Fprintln(c.stdout, "\nHeaders")
	}
	var headers [][2]string
	for _, h := range l.Headers {
		headers = append(headers, [2]string{"  " + clean(h.Key), string(h.Value)})
	}
	if err := printFacts(c.stdout, headers); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.stdout, "\nValue\n%s\n", valueText(l.Value))
	return err
}

// valueText is a body for a terminal: as it is when it is text, and only told about when it is not.
func valueText(value []byte) string {
	if value == nil {
		return "(null: an event without data)"
	}
	odd := func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' && r != '\r' }
	if !utf8.Valid(value) || strings.ContainsFunc(string(value), odd) {
		return fmt.Sprintf("(%s, no text; -o json has the value in base64)", overview.Plural(len(value), "byte"))
	}
	return string(value)
}
