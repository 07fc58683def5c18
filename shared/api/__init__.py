"""HTTP: app, middleware, authentication, streams, health, metrics; contracts/ holds the five APIs."""
