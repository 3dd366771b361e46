package main

import (
	"fmt"
	"time"

	"github.com/reenvio/reenvio/internal/control"
	"github.com/reenvio/reenvio/internal/overview"
	"github.com/reenvio/reenvio/internal/record"
)

// numbersResult is what came of a command that every number carries out.
type numbersResult struct {
	Action  record.Action     `json:"action"`
	Scope   record.HoldScope  `json:"scope"`
	Value   string            `json:"value,omitempty"`
	Result  record.ResultCode `json:"result"` // done, when it is so of every number
	Numbers []numberResult    `json:"numbers"`
}

type numberResult struct {
	Number int32             `json:"number"`
	Result record.ResultCode `json:"result"`
	Detail string            `json:"detail,omitempty"`
}

func newNumbersResult(action record.Action, hold record.Hold, wait time.Duration, numbers []control.NumberResult) numbersResult {
	r := numbersResult{Action: action, Scope: hold.Scope, Value: hold.Value, Result: record.ResultDone, Numbers: []numberResult{}}
	for _, n := range numbers {
		own := numberResult{Number: n.Number, Result: n.Result.Result, Detail: n.Result.Detail}
		if n.Pending {
			own.Result, own.Detail = resultPending, unanswered(n.Number, wait)
		}
		if own.Result != record.ResultDone && r.Result != record.ResultFailed {
			r.Result = own.Result
		}
		r.Numbers = append(r.Numbers, own)
	}
	return r
}

// printNumbers says nothing of what is done where nothing was to be released.
func (c *cli) printNumbers(r numbersResult, nothing bool, wait time.Duration, out format) error {
	var pending []int32
	done := 0
	for _, n := range r.Numbers {
		if n.Result == record.ResultDone {
			done++
		}
		if n.Result == resultPending {
			pending = append(pending, n.Number)
		}
	}
	if out == formatJSON {
		if err := printJSON(c.stdout, r); err != nil {
			return err
		}
	} else {
		past := map[record.Action]string{record.ActionHold: "held", record.ActionRelease: "released"}[r.Action]
		if !nothing {
			fmt.Fprintf(c.stdout, "%s: %d of %d numbers\n", past, done, len(r.Numbers))
		}
		for _, n := range r.Numbers {
			if n.Result != record.ResultDone && n.Result != resultPending {
				fmt.Fprintf(c.stdout, "number %d %s: %s\n", n.Number, n.Result, clean(n.Detail))
			}
		}
		if len(pending) > 0 {
			fmt.Fprintf(c.stdout, "pending: no dispatcher owns %s, or none has answered within %s\n", numbersText(pending), wait)
		}
	}
	if len(pending) > 0 {
		fmt.Fprintln(c.stderr, "The command is written, and is done there when a dispatcher takes the number over.")
	}
	if done < len(r.Numbers) {
		return errNotDone
	}
	return nil
}

func numbersText(numbers []int32) string {
	if len(numbers) == 1 {
		return "number " + overview.Ranges(numbers)
	}
	return "numbers " + overview.Ranges(numbers)
}
