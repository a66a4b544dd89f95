package pool

// What the tests reach from outside.
const StopGrace = stopGrace

var OutcomeOf = outcomeOf
