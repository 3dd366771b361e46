package record

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// maxRedriveCount keeps the count at the nine digits that a reader takes.
const maxRedriveCount = 999_999_999

// RedriveRecord is the dead event once more on the events topic, as its producer
// wrote it, with webhook-redrive: a new chain, under the same id. An event whose
// id is derived from its first place keeps that place, in webhook-moved, and with
// it the id.
//
// The error is an *InvalidError: a dispatcher could make no delivery of it.
func (l *DeadLetter) RedriveRecord(topic string, partition int32, run string) (*kgo.Record, error) {
	ours := make(list, 0, 2)
	if l.IDDerived {
		ours.text(headerMoved, l.First().String())
	}
	ours.text(headerRedrive, run+"/"+strconv.Itoa(min(l.Redrives()+1, maxRedriveCount)))
	r := l.record(topic, partition, l.Headers, ours)
	r.Key = l.Key // as it came: none, too
	_, err := FromEvent(r)
	return r, err
}

// Redrives is how often the event has been sent again; 0 for an event that its
// producer sent.
func (e *Event) Redrives() int {
	_, count, _ := strings.Cut(e.Redrive, "/")
	n, _ := decimal(count)
	return n
}

// RedriveRun is the run that sent the event again last; empty for none.
func (e *Event) RedriveRun() string { return redriveRun(e.Redrive) }

// ValidRedriveRun says whether run can name a redrive.
func ValidRedriveRun(run string) error {
	if !validRedrive(run + "/" + strconv.Itoa(maxRedriveCount)) {
		return fmt.Errorf("%q can't name a redrive: want 1 to 246 visible ASCII characters, none of them a slash", cut(run, 64))
	}
	return nil
}
