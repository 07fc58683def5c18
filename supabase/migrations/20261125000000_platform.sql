-- Requests of the platform's last functions are counted too (sql/40).
alter table rag.request_counts
  drop constraint request_counts_function_check,
  add constraint request_counts_function_check check (
    function in ('rag-search', 'rag-answer', 'api-keys', 'collections', 'documents', 'webhooks', 'indexes',
      'index-query', 'index-snapshots', 'chat-completions', 'knowledge', 'v1-search',
      'v1-contents', 'v1-similar', 'v1-answer', 'retrievals', 'chat', 'administration'));
