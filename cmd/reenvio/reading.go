package main

import "github.com/reenvio/reenvio/internal/story"

// reading tells a person how far a long read of a topic is.
func reading(p *progress) story.Progress {
	return func(topic string, partition int32, done, all int64) {
		if all > 0 {
			p.show("Reading %s/%d: %d %% of %d records.", topic, partition, done*100/all, all)
		}
	}
}

// quietly is for reads that are short.
func quietly(string, int32, int64, int64) {}

// story reads what became of events.
func (s *session) story(progress story.Progress) *story.Reader {
	return story.New(s.client, s.topo, s.settings.Dispatcher.Group, progress)
}
