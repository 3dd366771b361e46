// Package record reads and writes every kind of record that Reenvio keeps in
// Kafka: events, waiting records (retry and parked), dead letters, and the JSON
// records of the attempts, state, endpoints and commands topics.
//
// It is the only code that touches headers. Whoever reads a record gets a
// Delivery; whoever forwards one calls RetryRecord, ParkedRecord, MovedRecord
// or DeadLetter, which replace our headers and never stack them, so that a
// record is as large at its fiftieth hop as at its first.
//
// Three rules hold throughout:
//
//   - The event's own key, value and headers are kept byte for byte; a null
//     value stays null. What is ours is the prefixes "webhook-" and "__dlq.".
//   - No content loses a record: reading never panics and returns what could be
//     read even with an error; what is written about an event (errors,
//     responses) is escaped to text and cut, its value never.
//   - Readers of JSON ignore fields they don't know, and writers of records that
//     are rewritten (state, endpoints) keep them, so that two versions can run
//     side by side.
//
// The package refuses to know about topics' names, offsets to commit, or what an
// outcome means: callers pass the topic and the partition number, and keys are
// never hashed here.
package record
