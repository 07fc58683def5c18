"""HTTP: app, middleware, dependencies, streams, health, metrics; contracts/ holds the five APIs. Imports
every other package of shared.
"""
