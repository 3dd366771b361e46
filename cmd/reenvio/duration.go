package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// maxAgo is longer than any topic is kept, and short enough to count back from any clock.
const maxAgo = 100 * 365 * 24 * time.Hour

var errNoDuration = errors.New("it must be a duration, a number with a unit, such as 500ms, 90s, 24h or 7d")

// parseDuration reads a duration as people write it: in Go's units, or in days, since that is what topics are kept for.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if number, ok := strings.CutSuffix(text, "d"); ok {
		var days int
		days, err = strconv.Atoi(number)
		if most := int(maxAgo / (24 * time.Hour)); days < -most || days > most {
			return 0, errNoDuration
		}
		d = time.Duration(days) * 24 * time.Hour
	}
	if err != nil {
		return 0, errNoDuration
	}
	return d, nil
}

// duration is the value of a flag.
type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }
func (*duration) Type() string     { return "duration" }

func (d *duration) Set(text string) error {
	parsed, err := parseDuration(text)
	if err == nil {
		*d = duration(parsed)
	}
	return err
}

func durationFlag(flags *pflag.FlagSet, name string, value time.Duration, doc string) *time.Duration {
	d := new(time.Duration)
	durationVar(flags, d, name, value, doc)
	return d
}

func durationVar(flags *pflag.FlagSet, d *time.Duration, name string, value time.Duration, doc string) {
	*d = value
	flag := flags.VarPF((*duration)(d), name, "", doc)
	if value == 0 {
		flag.DefValue = "" // the help shows no default then
	}
}

// durations is the value of a flag with a list of them. Given twice, the second list follows the first.
type durations []time.Duration

func (d *durations) Type() string { return "durations" }

func (d *durations) String() string {
	texts := make([]string, len(*d))
	for i, one := range *d {
		texts[i] = one.String()
	}
	return strings.Join(texts, ",")
}

func (d *durations) Set(text string) error {
	var all durations
	for one := range strings.SplitSeq(text, ",") {
		parsed, err := parseDuration(strings.TrimSpace(one))
		if err != nil {
			return err
		}
		all = append(all, parsed)
	}
	*d = append(*d, all...)
	return nil
}
