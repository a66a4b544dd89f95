package pool

// What the tests reach from outside.
var OutcomeOf = outcomeOf
