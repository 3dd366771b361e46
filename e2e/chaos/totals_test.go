package chaos_test

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/reenvio/reenvio/e2e/history"
)

// totals are what runs can be added up by.
type totals struct {
	Seed             uint64         `json:"seed"`
	Minutes          float64        `json:"minutes"`
	SIGKILLs         int            `json:"sigkills"`
	SIGTERMs         int            `json:"sigterms"`
	SIGSTOPs         int            `json:"sigstops"`
	BrokersKilled    int            `json:"brokers_killed"`
	AllBrokersKilled int            `json:"all_brokers_killed"` // times
	LeadersMoved     int            `json:"leaders_moved"`
	Generations      int32          `json:"generations"`
	EndedByThemself  int            `json:"ended_by_themselves"`
	Events           int            `json:"events"`
	Ends             map[string]int `json:"ends"`
	Requests         int            `json:"requests"`
	Lost             int            `json:"lost"`
	Doubled          int            `json:"doubled"`
	Misordered       int            `json:"misordered"`
	OtherViolations  int            `json:"other_violations"`
	Extra            int            `json:"extra_requests"`
	Explained        map[string]int `json:"explained"`
	Faults           map[kind]int   `json:"faults"`
	Deeds            map[deed]int   `json:"deeds"`
}

func (w *world) totals(length time.Duration, report history.Report, events int, generations int32) totals {
	t := totals{
		Seed: w.seed, Minutes: length.Minutes(), Generations: generations, SIGKILLs: len(w.Crashes()), EndedByThemself: len(w.unasked),
		Events: events, Ends: report.Events, Requests: report.Requests, Extra: report.Extra, Explained: report.Explained,
		Faults: map[kind]int{}, Deeds: w.deeds,
	}
	for _, d := range w.done {
		t.Faults[d.kind]++
	}
	t.SIGTERMs, t.SIGSTOPs = t.Faults[ended], t.Faults[stopped]
	t.AllBrokersKilled = t.Faults[allLost]
	t.BrokersKilled = t.Faults[brokerLoss] + t.Faults[coordinatorLost] + len(w.Cluster.Brokers)*t.AllBrokersKilled
	t.LeadersMoved = t.Faults[groupMoved] + t.Faults[transactionsMoved] + t.Faults[leadersMoved]
	for _, v := range report.Violations {
		switch v.Promise {
		case history.NothingLost:
			t.Lost++
		case history.OneChain, history.Repeats, history.Once:
			t.Doubled++
		case history.Order, history.Strict:
			t.Misordered++
		default:
			t.OtherViolations++
		}
	}
	return t
}

func (t totals) String() string {
	return fmt.Sprintf("TOTALS: seed %d, %v minutes: %d SIGKILLs, %d SIGTERMs, %d SIGSTOPs, %d brokers killed (all at once %d times), leaders moved %d times, %d generations; "+
		"%d events; %d lost, %d doubled, %d out of order, %d other violations; %d requests, %d extra %v",
		t.Seed, t.Minutes, t.SIGKILLs, t.SIGTERMs, t.SIGSTOPs, t.BrokersKilled, t.AllBrokersKilled, t.LeadersMoved, t.Generations,
		t.Events, t.Lost, t.Doubled, t.Misordered, t.OtherViolations, t.Requests, t.Extra, t.Explained)
}

// keep appends the totals to the file that REENVIO_TEST_TOTALS names, a line for each run.
func (t totals) keep() error {
	name := os.Getenv("REENVIO_TEST_TOTALS")
	if name == "" {
		return nil
	}
	line, err := json.Marshal(t)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(line, '\n'))
	return err
}
