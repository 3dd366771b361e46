// Package tracker knows, for one topic-partition, which records are finished, and turns that into what is committed:
// an offset, and a text for the commit's metadata that names what is finished beyond it.
//
// Records finish in any order: one slow endpoint holds its offset while thousands behind it are done. A commit that could
// say only "up to here" would either lose the slow one or send the thousands again after a restart.
//
// Offsets are not contiguous. Transaction markers, aborted records, compaction and retention leave gaps of any width, so
// only offsets that were received count; what lies between two of them does not exist and never will, and the set may
// call it complete, whichever is shorter to write.
//
// The package does no I/O, knows nothing of records or of ownership, and does not guess: a text that it did not write is
// an error, not an empty set. A Tracker is not safe for concurrent use.
package tracker

// Tracker follows the offsets of one topic-partition from a commit on.
//
// Its size is that of what is in hand (80 bytes for each stretch of 512 offsets in which something is), not of the
// distance between the oldest and the newest: a head that waits for a day costs no more than one that waits a second.
type Tracker struct {
	open bitset // received, not complete
	pos  int64  // one after the highest offset received; the committed one before that
	top  int64  // one after the highest complete offset

	before restored // what the commit said was complete

	version   uint64 // counts what would be worth a commit
	committed uint64 // the version of the last snapshot committed
}

// New starts from a commit: its offset, or -1 when there is none, and the set that its metadata held.
func New(committed int64, done Set) *Tracker {
	t := &Tracker{pos: committed, top: committed}
	if committed < 0 {
		t.pos, t.top = -1, -1
		return t
	}
	t.before = newRestored(committed, done)
	t.top = t.before.end
	return t
}

// Received tells of a record that came from Kafka, and reports whether it is new work. It is not when the record was
// complete at the commit that the tracker started from, or has been received since.
//
// It must be told of every record, in the order of the partition: an offset passed over is taken not to exist.
func (t *Tracker) Received(offset int64) bool {
	if offset < max(t.pos, 0) {
		return false
	}
	t.pos = offset + 1
	if t.before.skip(offset) {
		t.version++ // the offset to commit may have moved
		return false
	}
	t.open.add(offset)
	return true
}

// Complete marks a record that was received as finished. To mark it again changes nothing.
func (t *Tracker) Complete(offset int64) {
	if !t.open.remove(offset) {
		return
	}
	t.top = max(t.top, offset+1)
	t.version++
}

// Position is one after the highest offset received: before the first one, the committed offset (-1 for none).
func (t *Tracker) Position() int64 { return t.pos }

// Offset is the one to commit: the lowest that was received and is not complete, or Position when all are.
func (t *Tracker) Offset() int64 {
	if lowest, ok := t.open.min(); ok {
		return lowest
	}
	return t.pos
}

// Incomplete is the number of records that were received and are not complete.
func (t *Tracker) Incomplete() int { return t.open.count }

// Changed reports whether there is something to commit that the last snapshot given to Committed did not hold.
func (t *Tracker) Changed() bool { return t.version != t.committed }

// Snapshot is what a commit says of one topic-partition at one moment.
type Snapshot struct {
	Offset int64 // -1: nothing was received or committed yet, there is nothing to say
	Done   Set   // what is complete beyond Offset

	version uint64
}

// Snapshot takes what is complete now. It stays as it is while the tracker goes on.
func (t *Tracker) Snapshot() Snapshot {
	base := t.Offset()
	var set setBuilder
	at := base
	for from, n := range t.open.runs() {
		if from >= t.top {
			break
		}
		set.add(true, from-at)
		set.add(false, n)
		at = from + n
	}
	if t.top > t.pos { // what was complete at the start and was not met again yet
		set.add(true, t.pos-at)
		t.before.rest(t.pos, &set)
	} else {
		set.add(true, t.top-at)
	}
	return Snapshot{Offset: base, Done: set.set(), version: t.version}
}

// Committed is told that a snapshot has reached Kafka. Without it (the transaction was aborted) Changed stays true, and
// the next snapshot holds it all again.
func (t *Tracker) Committed(s Snapshot) { t.committed = max(t.committed, s.version) }

// Fits reports whether n more records, the last of them at offset last, can be received with the certainty that the
// set fits the metadata afterwards, whichever of the records in hand are completed first. When it says no, fetching has
// to wait until some of them are: those at the lowest offsets help most.
//
// It says yes to any n while last is less than 23,592 offsets beyond Offset. What is older than that, and still in hand,
// shortens this stretch: one record by 16 to 24 offsets, 500 of them anywhere in 200,000 offsets to 15,000. Of records
// that lie so far apart that no stretch helps, 1,468 fit in 200,000 offsets. With nothing in hand, one record always fits.
func (t *Tracker) Fits(n int, last int64) bool {
	// Inside the stretch that the commit described, a record turns a hole not yet met into one in hand. This was asked
	// already when it was received for the first time.
	fresh := min(int64(n), last+1-t.before.end)
	if fresh <= 0 || n == 1 && t.open.count == 0 {
		return true
	}
	base, end := max(t.Offset(), 0), last+1
	// All as a list.
	if listBound(int64(t.open.count)+t.before.holes(t.pos)+fresh, end-base) <= fitBytes {
		return true
	}
	// The end as bits, and what lies before it as a list.
	for from, below := range t.open.splits(t.pos) {
		from = max(from, base)
		if end-from > fitSpan {
			return false
		}
		if listBound(int64(below), from-base)+bitBytes(end-from) <= fitBytes {
			return true
		}
	}
	return false
}
