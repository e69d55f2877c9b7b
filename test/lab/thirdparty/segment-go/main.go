// Command segment-go sends events with Segment's Go client, as the lab asks.
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/segmentio/analytics-go/v3"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run sends LAB_EVENTS events with the client's own settings for repeats.
func run() error {
	ended := make(ends)
	config := analytics.Config{Endpoint: os.Getenv("ACTIONPULSE_URL"), BatchSize: number("LAB_BATCH"), Callback: ended}
	client, err := analytics.NewWithConfig(os.Getenv("ACTIONPULSE_KEY"), config)
	if err != nil {
		return err
	}
	for i := range number("LAB_EVENTS") {
		if err := client.Enqueue(analytics.Track{UserId: "ada", Event: fmt.Sprintf("lab event %d", i)}); err != nil {
			return err
		}
	}
	// Closing abandons what is being repeated, so wait for the verdicts first.
	for range number("LAB_EVENTS") {
		<-ended
	}
	return client.Close()
}

// ends hears of each event that has ended.
type ends chan struct{}

func (e ends) Success(analytics.Message) { e <- struct{}{} }

func (e ends) Failure(_ analytics.Message, err error) {
	fmt.Fprintln(os.Stderr, "failed:", err)
	e <- struct{}{}
}

// number is 0 where a variable holds none.
func number(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return 0
	}
	return n
}
