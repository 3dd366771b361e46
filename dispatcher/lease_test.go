package dispatcher

import (
	"testing"
	"time"
)

func TestLease(t *testing.T) {
	var l lease
	start := time.Now()
	at := start.Add
	if l.holds("m", start) || !l.expired("m", start) {
		t.Error("a member that nobody has acknowledged may send")
	}
	// Acknowledged at 2 s, but sent at 0: the coordinator's clock may have started there.
	l.renew("m", start, start)
	for _, c := range []struct {
		member         string
		at             time.Duration
		holds, expired bool
	}{
		{"m", 0, true, false},
		{"m", leaseTime - 1, true, false},
		{"m", leaseTime, false, false},
		{"m", sessionTimeout - 1, false, false},
		{"m", sessionTimeout, false, true},
		{"other", 0, false, true},
		{"", 0, false, true},
	} {
		if holds, expired := l.holds(c.member, at(c.at)), l.expired(c.member, at(c.at)); holds != c.holds || expired != c.expired {
			t.Errorf("%q after %s: holds %v, expired %v; want %v, %v", c.member, c.at, holds, expired, c.holds, c.expired)
		}
	}
}

// A suspended machine's monotonic clock stands still, and the wall clock is set when it goes on.
func TestLeaseOfASuspendedMachine(t *testing.T) {
	var l lease
	at := settable(time.Now())
	l.renew("m", at(0, 0), at(0, 0))
	for d, want := range map[time.Duration]bool{leaseTime: false, -time.Hour: true} {
		if l.holds("m", at(time.Second, d)) != want {
			t.Errorf("a second after an answer, with the clock set by %s: the lease holds is not %v", d, want)
		}
	}
	if !l.holds("m", at(leaseTime-1, 0)) || l.holds("m", at(leaseTime, -time.Hour)) {
		t.Error("the clock was set back, and the lease lasts longer")
	}
}

// Answers may come in another order than their requests were sent.
func TestLeaseIsNotShortened(t *testing.T) {
	var l lease
	start := time.Now()
	l.renew("m", start.Add(3*time.Second), start)
	l.renew("m", start, start)
	if !l.holds("m", start.Add(3*time.Second+leaseTime-1)) {
		t.Error("a late answer to an old request took the lease back")
	}
}

// A sign of life under one member id says nothing of another, and a late one of a
// former id takes nothing from the new one.
func TestLeaseIsTheMembers(t *testing.T) {
	var l lease
	start := time.Now()
	l.renew("old", start, start)
	l.renew("new", start.Add(time.Second), start)
	l.renew("old", start.Add(time.Second/2), start)
	if l.holds("old", start) || !l.holds("new", start) || l.holds("new", start.Add(time.Second+leaseTime)) {
		t.Error("the lease of one member id was taken for the other's")
	}
}

// Who waits for the lease is woken when it is back, and not at each heartbeat.
func TestLeaseTellsThatItIsBack(t *testing.T) {
	var l lease
	start := time.Now()
	for _, c := range []struct {
		sent time.Duration
		want bool
	}{{time.Second, true}, {2 * time.Second, false}, {2*time.Second + leaseTime, true}, {3*time.Second + leaseTime, false}} {
		if got := l.renew("m", start.Add(c.sent), start.Add(c.sent)); got != c.want {
			t.Errorf("renewed at %s: regained is %v, want %v", c.sent, got, c.want)
		}
	}
}
