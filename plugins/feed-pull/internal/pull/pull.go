package pull

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/feedread"
	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/protocol/fault"
)

// fullEvery is how often a feed is asked for without conditions, against servers that answer 304 for ever.
const fullEvery = 24 * time.Hour

const accept = "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml;q=0.9, " +
	"application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;q=0.5"

// store is what a pull needs of a feed store.
type store interface {
	Find(ctx context.Context, ref feed.Ref) (feed.Feed, error)
	Save(ctx context.Context, pull *feed.Pull, policy feed.Policy) (feed.Saved, error)
	Icon(ctx context.Context, feedID int64) (feed.Icon, error)
	SaveIcon(ctx context.Context, feedID int64, icon feed.Icon) error
}

// puller does the pulls of one process.
type puller struct {
	client     *fetch.Client
	store      store
	closeStore func() error
	policy     feed.Policy
	// iconClient takes less and waits less than client; icons is whether they are looked for at all.
	iconClient *fetch.Client
	icons      bool
}

// pull does one task. Its error is a *fault.Fault, or wraps the cause that ended ctx.
func (p *puller) pull(ctx context.Context, in Payload) (*Result, error) {
	known, err := p.find(ctx, in)
	if err != nil {
		return nil, err
	}
	trip := &feed.Pull{Feed: feed.Ref{ID: known.ID, URL: known.URL}, At: time.Now()}
	request := fetch.Request{URL: known.URL, Accept: accept}
	if !in.Force && trip.At.Sub(known.FullAt) < fullEvery {
		request.ETag, request.LastModified = known.ETag, known.LastModified
	}
	trip.Unconditional = request.ETag == "" && request.LastModified == ""
	response, err := p.client.Get(ctx, request)
	trip.Took = time.Since(trip.At)
	if err == nil {
		err = judge(trip, response, known, in.Force)
	}
	if err != nil {
		return nil, p.failed(ctx, trip, err)
	}
	saved, err := p.save(ctx, trip)
	if err != nil {
		return nil, err
	}
	if p.icons && trip.Answer != feed.GoneAnswer {
		p.lookForIcon(ctx, &saved.Feed)
	}
	return resultOf(&saved, response), nil
}

// find returns the feed that a payload names; one that is not known yet has no number.
func (p *puller) find(ctx context.Context, in Payload) (feed.Feed, error) {
	if (in.URL == "") == (in.FeedID == 0) {
		return feed.Feed{}, fault.New(fault.InvalidPayload, "name the feed by exactly one of url and feed_id").AsPermanent()
	}
	ref := feed.Ref{ID: in.FeedID}
	if in.URL != "" {
		address, err := fetch.ParseURL(in.URL)
		if err != nil {
			return feed.Feed{}, err
		}
		ref.URL = fetch.Canonical(address)
	}
	known, err := p.store.Find(ctx, ref)
	switch {
	case errors.Is(err, feed.ErrNotFound) && in.FeedID != 0:
		return known, fault.New(fault.InvalidPayload, "feed_id: there is no feed %d in the store", in.FeedID).AsPermanent()
	case errors.Is(err, feed.ErrNotFound):
		return feed.Feed{URL: ref.URL}, nil
	case err != nil:
		return known, unavailable(ctx, err)
	}
	return known, nil
}

// judge decides what an answer means and, when there is something to read, reads it.
func judge(trip *feed.Pull, response *fetch.Response, known feed.Feed, force bool) error {
	trip.HTTPStatus = response.Status
	trip.ETag, trip.LastModified = response.ETag(), response.LastModified()
	trip.Warnings = response.Warnings
	switch {
	case response.Status == http.StatusGone:
		trip.Answer, trip.ErrorKind, trip.ErrorText = feed.GoneAnswer, fault.HTTPStatus.String(), "the server says that the feed is gone (410)"
		return nil
	case response.NotModified() && trip.Unconditional:
		return fault.New(fault.HTTPStatus, "%s answers 304 Not Modified to a request without conditions", fetch.Redact(response.URL))
	}
	if err := response.Check(time.Now()); err != nil {
		return err
	}
	if moved := response.Moved(); moved != "" {
		if address, err := fetch.ParseURL(moved); err == nil {
			trip.MovedTo = fetch.Canonical(address)
		}
	}
	if response.NotModified() {
		trip.Answer = feed.NotModified
		return nil
	}
	trip.BodyHash = feed.BodyHash(response.Body)
	if trip.BodyHash == known.BodyHash && !force {
		trip.Answer = feed.SameBody
		return nil
	}
	document, err := feedread.Read(response.Body, feedread.Source{URL: response.URL, ContentType: response.Header.Get("Content-Type")})
	if err != nil {
		return named(response, err)
	}
	trip.Answer, trip.Document = feed.Read, &document
	trip.Warnings = append(trip.Warnings, document.Warnings...)
	if response.Damaged {
		// With these the rest would stay unread until the feed changes.
		trip.ETag, trip.LastModified, trip.BodyHash = "", "", feed.Hash{}
	}
	return nil
}

// named says which address gave what is no feed, and calls a challenge page by its name.
func named(response *fetch.Response, err error) error {
	f := fault.From(err)
	message := f.Message
	if challenge := response.Challenge(); challenge != "" && f.Kind == fault.WrongContent {
		message = "the answer is " + challenge
	}
	return fault.New(f.Kind, "%s: %s", fetch.Redact(response.URL), message)
}

// failed records a pull that came to nothing and returns the fault that ends the task.
func (p *puller) failed(ctx context.Context, trip *feed.Pull, err error) error {
	var f *fault.Fault
	if !errors.As(err, &f) {
		return err // the task was ended; the feed is not to blame
	}
	if trip.Feed.ID == 0 && (f.Kind == fault.Refused || f.Kind == fault.InvalidPayload) {
		return f.AsPermanent() // what may not be asked for does not become a feed
	}
	trip.Answer, trip.ErrorKind, trip.ErrorText = feed.Failed, f.Kind.String(), f.Message
	trip.MovedTo, trip.Document = "", nil
	if f.RetryAfter != nil {
		trip.RetryAfter = *f.RetryAfter
	}
	saved, err := p.save(ctx, trip)
	if err != nil {
		return err
	}
	sdk.Logger(ctx).InfoContext(ctx, "pull failed", "feed_id", saved.Feed.ID, "kind", f.Kind.String(), "failures", saved.Feed.Failures,
		"next_fetch", saved.Feed.NextFetch)
	return f.AsPermanent()
}

func (p *puller) save(ctx context.Context, trip *feed.Pull) (feed.Saved, error) {
	saved, err := p.store.Save(ctx, trip, p.policy)
	if err != nil {
		return saved, unavailable(ctx, err)
	}
	return saved, nil
}

// unavailable is the fault of a store that did not do its work; the queue tries again.
func unavailable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fault.New(fault.Unavailable, "the feed store: %v", err)
}
