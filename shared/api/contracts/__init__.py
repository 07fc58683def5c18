"""Wire models, envelopes and status codes of the five APIs: rag (ours), search (Lightfast), index
(KAITO), platform (Mnemosyne), knowledge (agent gateway); of MCP, API keys and Dify. Imports types, errors and
request types of answering.
"""
