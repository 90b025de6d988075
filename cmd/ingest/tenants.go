package main

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// How many tenants are watched, at least, and for each that is named. Whoever
// has a larger share of the rows than one in so many is never missed.
const (
	watchedMin      = 1000
	watchedPerNamed = 8
)

// agingRows is how many rows it takes to halve the weights.
const agingRows = 10_000_000

// topTenants counts rows by tenant for the n tenants that have most of them, and
// for all others together. It holds watchedPerNamed·n tenants, however many
// there are: the space-saving algorithm, in which a newcomer takes the place
// and the weight of the lightest.
//
// Weights only decide who is named. The counter of a tenant begins at 0 when it
// is named, so that it only grows, and rates add up to that of all rows. A
// tenant that is no longer among the n loses its series; but only one that is
// heavier for certain takes its place, so that many alike do not take turns.
// Weights are halved after each agingRows rows: who was large long ago makes
// room.
type topTenants struct {
	n    int
	desc *prometheus.Desc

	mu       sync.Mutex
	watched  map[string]*watchedTenant
	lightest watchedHeap // of all that are watched; those that are named come last
	named    int
	other    float64 // rows of who was not named when they came
	aged     int64   // rows since the weights were halved
}

// A watchedTenant may be named.
type watchedTenant struct {
	name      string
	weight    int64 // rows, and what was inherited: at least its rows
	inherited int64
	named     bool
	rows      float64 // since it was named
	index     int     // in the heap
}

func newTopTenants(n int) *topTenants {
	return &topTenants{
		n: n, watched: map[string]*watchedTenant{},
		desc: prometheus.NewDesc(namespace+"_tenant_rows_total", "With metrics.top-tenants: durable rows of the tenants that have most of them, from when they were named; an empty tenant is all others.", []string{"tenant"}, nil),
	}
}

// add counts the rows of a segment.
func (t *topTenants) add(rows map[string]int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for tenant, n := range rows {
		w := t.watch(tenant)
		w.weight += n
		t.aged += n
		if !w.named && t.named < t.n {
			w.named = true
			t.named++
		}
		if w.named {
			w.rows += float64(n)
		} else {
			t.other += float64(n)
		}
		heap.Fix(&t.lightest, w.index)
	}
	if t.aged >= agingRows {
		t.age()
	}
}

// watch returns the place of a tenant, if need be that of the lightest one.
func (t *topTenants) watch(tenant string) *watchedTenant {
	if w := t.watched[tenant]; w != nil {
		return w
	}
	w := &watchedTenant{name: tenant}
	if len(t.watched) >= max(watchedMin, t.n*watchedPerNamed) {
		gone := heap.Pop(&t.lightest).(*watchedTenant)
		w.weight, w.inherited = gone.weight, gone.weight
		delete(t.watched, gone.name)
	}
	t.watched[tenant] = w
	heap.Push(&t.lightest, w)
	return w
}

// age halves the weights.
func (t *topTenants) age() {
	t.aged = 0
	for _, w := range t.lightest {
		w.weight /= 2
		w.inherited /= 2
	}
	heap.Init(&t.lightest)
}

// claim is what a tenant has a place by: all its weight where it has one, and
// what is its own for certain where it has none.
func (w *watchedTenant) claim() int64 {
	if w.named {
		return w.weight
	}
	return w.weight - w.inherited
}

// choose names the n with the largest claims, and returns them.
func (t *topTenants) choose() []*watchedTenant {
	all := slices.Clone(t.lightest)
	slices.SortFunc(all, func(a, b *watchedTenant) int {
		first := 0
		if a.named != b.named {
			first = 1
			if a.named {
				first = -1
			}
		}
		return cmp.Or(cmp.Compare(b.claim(), a.claim()), first, cmp.Compare(a.name, b.name))
	})
	t.named = min(t.n, len(all))
	for i, w := range all {
		if w.named = i < t.named; !w.named {
			w.rows = 0
		}
	}
	heap.Init(&t.lightest)
	return all[:t.named]
}

// Describe implements [prometheus.Collector].
func (t *topTenants) Describe(out chan<- *prometheus.Desc) { out <- t.desc }

// Collect implements [prometheus.Collector].
func (t *topTenants) Collect(out chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range t.choose() {
		out <- prometheus.MustNewConstMetric(t.desc, prometheus.CounterValue, w.rows, w.name)
	}
	out <- prometheus.MustNewConstMetric(t.desc, prometheus.CounterValue, t.other, "")
}

// A watchedHeap has the lightest tenant that is not named first.
type watchedHeap []*watchedTenant

func (h watchedHeap) Len() int { return len(h) }

func (h watchedHeap) Less(i, j int) bool {
	if h[i].named != h[j].named {
		return h[j].named
	}
	return h[i].weight < h[j].weight
}

func (h watchedHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements [heap.Interface].
func (h *watchedHeap) Push(w any) {
	w.(*watchedTenant).index = len(*h)
	*h = append(*h, w.(*watchedTenant))
}

// Pop implements [heap.Interface].
func (h *watchedHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return w
}
