// Package procs is one pipeline for tests whose dispatchers are processes: the real
// binary, each with an instance id of its own, that can be killed, stopped and
// started again; a receiver; and all that is needed to prove its history.
//
// It refuses to look inside a dispatcher: what it knows is what the receiver saw,
// what the topics hold, what the group says, and the logs.
package procs
