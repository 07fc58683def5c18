"""From a file to an answer: brought, waited for, searched, asked about. It reads MNEMOSYNE_API_KEY,
MNEMOSYNE_BASE_URL (else the local stack) and guide.pdf."""

# fmt: off
from mnemosyne import Mnemosyne

# Initialize client
client = Mnemosyne()

# Create collection
collection = client.collections.create(
    name="company-docs",
    description="Internal documentation"
)

# Upload document
document = client.documents.create(
    collection_id=collection.id,
    file=open("guide.pdf", "rb")
)

# Wait for processing
client.documents.wait_until_ready(document.id, timeout=300)

# Retrieve relevant chunks
results = client.retrievals.retrieve(
    collection_id=collection.id,
    query="How do I deploy?",
    mode="hybrid",
    top_k=10,
    rerank=True
)

for result in results:
    print(f"Score: {result.score}")
    print(f"Content: {result.content}\n")

# Chat completion
response = client.chat.completions.create(
    collection_id=collection.id,
    messages=[
        {"role": "user", "content": "How do I deploy the application?"}
    ],
    model="gpt-4o-mini",
    stream=False
)

print(response.choices[0].message.content)

# Streaming chat
stream = client.chat.completions.create(
    collection_id=collection.id,
    messages=[
        {"role": "user", "content": "Explain the architecture"}
    ],
    stream=True
)

for chunk in stream:
    if chunk.choices[0].delta.content:
        print(chunk.choices[0].delta.content, end="")
