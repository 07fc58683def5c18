// A deployment's health, an org's figures and audit events, and the caller's orgs.

import type { ListParams } from "../pages.js";

export type State = "healthy" | "degraded" | "unhealthy" | "unknown" | "not_configured";

export interface Health {
  readonly status: "healthy" | "degraded" | "unhealthy";
  readonly version: string;
  readonly services: Readonly<Record<string, State>>;
  /** Of the database, with the way out; null without one. */
  readonly problem: string | null;
  readonly timestamp: string;
  /** The number of the caller's orgs. */
  readonly orgs: number | null;
  /** For admins; null for other users. */
  readonly details: Readonly<Record<string, Readonly<Record<string, string | number | null>> | null>> | null;
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
  /** Null for an org of the deployment's own table. */
  readonly name: string | null;
  readonly role: "admin" | "member" | (string & {}) | null;
}

/** An action of a user on knowledge: counts and a score, and no text. */
export interface AuditEvent {
  readonly id: string;
  readonly orgId: string;
  /** The user whose own namespace it is; null for one of the org's. */
  readonly ownerId: string | null;
  readonly userId: string;
  readonly event: string;
  readonly namespace: string;
  readonly collectionId: string | null;
  readonly documentCount: number;
  readonly chunkCount: number;
  /** The score of the best chunk; null without one. */
  readonly topScore: number | null;
  readonly createdAt: string;
}

export interface ListEvents extends Omit<ListParams, "order"> {
  namespace?: string | undefined;
  event?: "knowledge.ingest" | "knowledge.retrieve" | "knowledge.query" | "knowledge.delete" | undefined;
}
