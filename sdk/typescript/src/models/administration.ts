// A deployment's health, an org's figures, and the caller's orgs.

export type State = "healthy" | "degraded" | "unhealthy" | "unknown" | "not_configured";

export interface Health {
  readonly status: "healthy" | "degraded" | "unhealthy";
  readonly version: string;
  readonly services: Readonly<Record<string, State>>;
  readonly timestamp: string;
  /** An admin's to see; null for everybody else. */
  readonly details: Readonly<Record<string, Readonly<Record<string, string | number | null>>>> | null;
}

export interface Stats {
  readonly totalUsers: number;
  readonly totalCollections: number;
  readonly totalDocuments: number;
  readonly totalChunks: number;
  readonly totalEntities: number;
  readonly totalRelationships: number;
  readonly storageUsedBytes: number;
  readonly apiCallsToday: number;
  readonly isComplete: boolean;
}

export interface Org {
  readonly id: string;
  /** Null for an org that the deployment keeps in a table of its own. */
  readonly name: string | null;
  readonly role: "admin" | "member" | (string & {}) | null;
}
