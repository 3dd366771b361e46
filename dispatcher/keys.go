package dispatcher

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

const foreignKeysText = "the keyset lacks keys that webhooks were written with: give this dispatcher the keyset that the others have (secrets.keyset_file, secrets.keyset)"

// foreignKeys are the webhooks of a number whose values name a key that our keyset
// lacks, and those keys. Such a webhook is paused when its first event comes; that
// this dispatcher has another keyset than the others is told before.
type foreignKeys struct {
	mu       sync.Mutex
	webhooks map[string][]uint32
}

func (f *foreignKeys) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.webhooks = map[string][]uint32{}
}

// noteKeys looks at a record of the endpoints topic.
func (n *number) noteKeys(webhook string, e *endpoint) {
	ids := n.d.keys.Lacks(e.value)
	n.foreign.mu.Lock()
	defer n.foreign.mu.Unlock()
	if len(ids) == 0 {
		delete(n.foreign.webhooks, webhook)
		return
	}
	n.foreign.webhooks[webhook] = ids
}

// warnOfKeys says it once: each webhook that is paused for it has a line of its own.
func (n *number) warnOfKeys() {
	webhooks, ids := n.foreign.sum()
	if webhooks == 0 {
		return
	}
	n.d.keysWarned.Do(func() { n.log.Error(foreignKeysText, "webhooks", webhooks, "keys", fmt.Sprint(ids)) })
}

func (f *foreignKeys) sum() (webhooks int, ids []uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[uint32]bool{}
	for _, lacking := range f.webhooks {
		for _, id := range lacking {
			all[id] = true
		}
	}
	return len(f.webhooks), slices.Sorted(maps.Keys(all))
}

// foreignKeys sums up all numbers in our hands.
func (d *Dispatcher) foreignKeys() (webhooks int, ids []uint32) {
	d.ownership.each(func(n *number) {
		more, lacking := n.foreign.sum()
		webhooks += more
		ids = append(ids, lacking...)
	})
	slices.Sort(ids)
	return webhooks, slices.Compact(ids)
}
