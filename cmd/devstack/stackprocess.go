package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// A stackProcess is up in a process of its own, so that its work is not
// counted as ingest's.
type stackProcess struct {
	settingsLine
	child *child
	out   *bufio.Reader
}

func (r *race) startStack(dir string) (*stackProcess, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	c, err := startChild(r.here, childEnv(nil), write, self, "up", "--json", "--dir", dir, "--kafka-port", "0", "--s3-port", "0",
		"--topic", r.topic, "--partitions", fmt.Sprint(r.partitions))
	if err != nil {
		return nil, err
	}
	s := &stackProcess{child: c, out: bufio.NewReader(read)}
	if err := s.line(&s.settingsLine); err != nil {
		c.kill()
		return nil, err
	}
	return s, nil
}

// line reads the next line that the process prints.
func (s *stackProcess) line(into any) error {
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("the stack ended: %w", err)
	}
	if err := json.Unmarshal(line, into); err != nil {
		return fmt.Errorf("the stack said %q", line)
	}
	return nil
}

// stop ends the process and returns the S3 requests that it has seen.
func (s *stackProcess) stop() (map[string]int, error) {
	if err := s.child.stop(time.Minute); err != nil {
		return nil, err
	}
	var end requestsLine
	err := s.line(&end)
	return end.Requests, err
}
